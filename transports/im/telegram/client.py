"""A thin client of the Bot API on aiohttp: one call is one try, and an outcome is a result or what errors.py names.

The token is part of every URL; no URL, and nothing that could hold one, goes into a message or a log.
Words and codes of refusals: Bot API 10.x as its servers send them (github.com/tdlib/telegram-bot-api).
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from transports.im.errors import (
    Ambiguous,
    BadCredentials,
    BadMarkup,
    Conflict,
    Forbidden,
    Gone,
    Migrated,
    PlatformError,
    RetryAfter,
    Scope,
    TooLong,
    Transient,
    Unsupported,
)

CALL_S = 30.0
"""A call's whole time; a file's is longer by its size at a slow line's 64 KiB a second."""
CONNECT_S = 10.0
POLL_S = 50
LARGEST_ANSWER = 16 * 1024 * 1024

_GONE = (
    "message to edit not found", "message can't be edited", "message to delete not found", "message can't be deleted", "message_id_invalid",
    "message thread not found", "topic_deleted", "topic_id_invalid", "message to react not found", "message to be replied not found",
    "no text in the message to edit",
)  # fmt: skip
_FORBIDDEN = ("chat not found", "rights", "chat_write_forbidden", "topic_closed", "user is deactivated", "peer_id_invalid", "chat_restricted")
_MARKUP = ("can't parse", "entity", "entities", "rich", "button_", "wrong http url", "utf-8")
_UNSUPPORTED = ("reaction_invalid", "private chat", "available only", "not available", "method not found", "not supported", "image_process_failed",
                "photo_invalid", "photo_ext", "draft")  # fmt: skip


class BotApi:
    """`token` and `base` ("https://api.telegram.org") of one bot. Close it."""

    def __init__(self, token: str, base: str, *, proxy: str = "", poll_s: int = POLL_S) -> None:
        self._token = token
        self._base = base.rstrip("/")
        self._proxy = proxy or None
        self.poll_s = poll_s
        self._session: aiohttp.ClientSession | None = None

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None or self._session.closed:
            local = (urlsplit(self._base).hostname or "") in ("127.0.0.1", "localhost", "::1")
            # Telegram closes idle connections after about a minute; a shorter life here spares an ambiguous send
            connector = aiohttp.TCPConnector(limit=64, keepalive_timeout=25)
            self._session = aiohttp.ClientSession(connector=connector, trust_env=not local, cookie_jar=aiohttp.DummyCookieJar())
        return self._session

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def call(
        self, method: str, params: dict[str, Any] | None = None, *, file: tuple[str, Path, str, str] | None = None, timeout: float = CALL_S,
        scope: Scope = "chat",
    ) -> Any:  # fmt: skip
        """The result. `file`: (parameter, path, name, mime), sent along. `scope`: what a flood refusal without words concerns.

        Raises RetryAfter, Transient, Ambiguous, Forbidden, Gone, BadMarkup, TooLong, Unsupported, Conflict, BadCredentials,
        Migrated, PlatformError. "Message is not modified" is the result True.
        """
        url = f"{self._base}/bot{self._token}/{method}"
        if file is not None:
            timeout += file[1].stat().st_size / 65536
        limits = aiohttp.ClientTimeout(total=timeout, sock_connect=CONNECT_S)
        try:
            if file is None:
                request = self._open().post(url, json=params or {}, timeout=limits, proxy=self._proxy)
                async with request as response:
                    status, raw = response.status, await _read(response)
            else:
                status, raw = await self._upload(url, params or {}, file, limits)
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.ClientProxyConnectionError) as error:
            raise Transient(f"Telegram cannot be reached ({type(error).__name__}).") from None
        except (aiohttp.ClientError, TimeoutError, ConnectionError) as error:
            raise Ambiguous(f"The connection to Telegram broke during {method} ({type(error).__name__}).") from None
        return _outcome(method, status, raw, scope)

    async def _upload(
        self, url: str, params: dict[str, Any], file: tuple[str, Path, str, str], limits: aiohttp.ClientTimeout
    ) -> tuple[int, bytes]:
        form = aiohttp.FormData()
        for key, value in params.items():
            form.add_field(key, value if isinstance(value, str) else json.dumps(value))
        key, path, name, mime = file
        with path.open("rb") as handle:
            form.add_field(key, handle, filename=name, content_type=mime or "application/octet-stream")
            async with self._open().post(url, data=form, timeout=limits, proxy=self._proxy) as response:
                return response.status, await _read(response)

    async def download(self, path: str, target: Path, limit: int) -> int:
        """Write the file that getFile named to `target`; its size. TooLong beyond `limit` bytes."""
        url = f"{self._base}/file/bot{self._token}/{path}"
        limits = aiohttp.ClientTimeout(total=CALL_S + limit / 65536, sock_connect=CONNECT_S, sock_read=CALL_S)
        size = 0
        try:
            async with self._open().get(url, timeout=limits, proxy=self._proxy) as response:
                if response.status != 200:
                    raise Transient(f"Telegram did not give the file (HTTP {response.status}).")
                with target.open("wb") as out:
                    async for piece in response.content.iter_chunked(65536):
                        size += len(piece)
                        if size > limit:
                            raise TooLong(f"The file is larger than {limit} bytes.")
                        await asyncio.to_thread(out.write, piece)
        except (aiohttp.ClientError, TimeoutError, ConnectionError) as error:
            raise Transient(f"The connection to Telegram broke during a download ({type(error).__name__}).") from None
        return size


async def _read(response: aiohttp.ClientResponse) -> bytes:
    raw = await response.content.read(LARGEST_ANSWER)
    while not response.content.at_eof():
        piece = await response.content.read(LARGEST_ANSWER)
        if len(raw) + len(piece) > LARGEST_ANSWER:
            raise aiohttp.ClientPayloadError("the answer is too large")
        raw += piece
    return raw


def _outcome(method: str, status: int, raw: bytes, scope: Scope) -> Any:
    try:
        answer = json.loads(raw)
        if not isinstance(answer, dict) or not isinstance(answer.get("ok"), bool):
            raise ValueError("no answer of the Bot API")
    except (ValueError, RecursionError):
        if status == 504:
            raise Ambiguous("Telegram's gateway gave up waiting (HTTP 504).") from None
        if status in (401, 403, 407):
            raise Transient(f"Something between here and Telegram refused (HTTP {status}).") from None
        raise Transient(f"Telegram answered with something that is no answer (HTTP {status}).") from None
    if answer["ok"]:
        return answer.get("result")
    more = answer.get("parameters")
    raise_for(method, int(answer.get("error_code") or status), str(answer.get("description") or ""), more if isinstance(more, dict) else {}, scope)
    return True


def raise_for(method: str, code: int, words: str, more: dict[str, Any], scope: Scope) -> None:
    """Raise what a refusal means; return for one that is as good as success."""
    low, said = words.lower(), f"Telegram refused {method}: {words[:300]}"
    if code == 429:
        raise RetryAfter(_seconds(more.get("retry_after"), low), scope, said)
    if more.get("migrate_to_chat_id"):
        raise Migrated(str(more["migrate_to_chat_id"]), said)
    if code == 409:
        raise Conflict(said)
    if code == 401 or (code == 404 and method == "getMe"):
        raise BadCredentials("Telegram does not know this token.", hint="Get the token from @BotFather and set it again.")
    if code >= 500:
        raise Transient(said)
    if code == 413 or "too long" in low or "too_long" in low or "too big" in low:
        raise TooLong(said)
    if code == 404:
        raise Unsupported(said)
    if "not modified" in low:
        return
    if any(sign in low for sign in _GONE):
        raise Gone(said)
    if code == 403 or any(sign in low for sign in _FORBIDDEN):
        raise Forbidden(said)
    if any(sign in low for sign in _UNSUPPORTED):
        raise Unsupported(said)
    if any(sign in low for sign in _MARKUP):
        raise BadMarkup(said)
    raise PlatformError(said)


def _seconds(value: Any, words: str) -> float:
    """How long to be silent; from the words, where an intermediate server left the number out."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0:
        return float(value)
    last = words.rsplit(" ", 1)[-1]
    return float(last) if last.isdigit() and len(last) < 8 else 5.0
