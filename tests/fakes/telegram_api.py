"""A strict Telegram Bot API on loopback, as a process of its own:  python -m tests.fakes.telegram_api

It tells its port as one JSON line and ends when its stdin does. Bots talk to /bot<token>/<method> and /file/bot<token>/<path>;
a test talks to the control door, POST /control/<operation> with a JSON body (see `_Control`). Every call is kept, with its
parameters and its outcome, and can be waited for: `calls` answers when there is something new.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
from typing import Any

from aiohttp import web

from tests.fakes.telegram_methods import method_of
from tests.fakes.telegram_rules import Refused, bad
from tests.fakes.telegram_state import Bot, Telegram

_BUDGETED = ("send", "edit")
_LITERAL = ("text", "caption")


def _answer(result: Any) -> web.Response:
    return web.json_response({"ok": True, "result": _public(result)})


def _public(value: Any) -> Any:
    """Without what only the test is to see (keys that begin with an underscore)."""
    if isinstance(value, dict):
        return {key: _public(v) for key, v in value.items() if not key.startswith("_")}
    return [_public(v) for v in value] if isinstance(value, list) else value


def _refusal(refused: Refused) -> web.Response:
    body: dict[str, Any] = {"ok": False, "error_code": refused.code, "description": refused.description}
    if refused.parameters:
        body["parameters"] = refused.parameters
    return web.json_response(body, status=refused.code)


class _Server:
    def __init__(self) -> None:
        self.telegram = Telegram()
        self.calls: list[dict[str, Any]] = []
        self.faults: list[dict[str, Any]] = []
        self.gates: dict[str, asyncio.Event] = {}
        self.limit: dict[str, float] = {}
        self.buckets: dict[str, tuple[float, float]] = {}
        self.changed = asyncio.Condition()
        self.control = _Control(self)

    async def tell(self) -> None:
        async with self.changed:
            self.changed.notify_all()

    # --- the Bot API ---

    async def api(self, request: web.Request) -> web.StreamResponse:
        bot = self.telegram.bots.get(request.match_info["token"])
        name = request.match_info["method"]
        if bot is None:
            return _refusal(Refused(401, "Unauthorized"))
        try:
            params = await _parameters(request)
        except ValueError as error:
            return _refusal(bad(f"can't parse the request: {error}"))
        call = {"number": len(self.calls), "bot": bot.username, "method": name, "params": _told(params), "time": time.monotonic(), "outcome": ""}
        if name.lower() != "getupdates":
            self.calls.append(call)
        fault = self._fault(name, params)
        response = await self._struck(fault, request, call) if fault is not None else None
        if response is None:
            response = await self._called(bot, name, params, call)
        if fault is not None and fault["kind"] == "cut_after":
            call["outcome"] += " cut_after"
            await self.tell()
            return _cut(request)
        await self.tell()
        return response

    async def _called(self, bot: Bot, name: str, params: dict[str, Any], call: dict[str, Any]) -> web.StreamResponse:
        try:
            if name.lower() == "getupdates":
                return _answer(await self._get_updates(bot, params))
            method = method_of(bot, name.lower())
            if method is None:
                raise Refused(404, "Not Found: method not found")
            self._budget(name, params)
            result = method(self.telegram, bot, params)
            call["outcome"] = "ok"
            call["result"] = result.get("message_id") if isinstance(result, dict) else result
            return _answer(result)
        except Refused as refused:
            call["outcome"] = f"{refused.code} {refused.description}"
            return _refusal(refused)

    async def _get_updates(self, bot: Bot, params: dict[str, Any]) -> list[dict[str, Any]]:
        if bot.webhook:
            raise Refused(409, "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first")
        if isinstance(params.get("allowed_updates"), list):
            bot.allowed = [str(kind) for kind in params["allowed_updates"]]
        bot.poll += 1
        mine = bot.poll
        await self.tell()
        offset = int(params.get("offset") or 0)
        if offset < 0:
            bot.updates[:] = bot.updates[offset:]
        elif offset:
            bot.updates[:] = [u for u in bot.updates if u["update_id"] >= offset]
        if offset:
            await self.tell()
        until = asyncio.get_running_loop().time() + min(50.0, float(params.get("timeout") or 0))
        limit = max(1, min(100, int(params.get("limit") or 100)))
        async with self.changed:
            while not bot.updates and bot.poll == mine:
                left = until - asyncio.get_running_loop().time()
                if left <= 0:
                    break
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self.changed.wait(), left)
        if bot.poll != mine:
            raise Refused(409, "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running")
        return bot.updates[:limit]

    def _budget(self, name: str, params: dict[str, Any]) -> None:
        """Flood control per chat: `limit` = {"per_s", "burst", "retry_after"}."""
        if not self.limit or not name.lower().startswith(_BUDGETED) or name.lower() == "sendchataction":
            return
        chat, now = str(params.get("chat_id")), time.monotonic()
        tokens, at = self.buckets.get(chat, (self.limit["burst"], now))
        tokens = min(self.limit["burst"], tokens + (now - at) * self.limit["per_s"])
        self.buckets[chat] = (tokens - 1 if tokens >= 1 else tokens, now)
        if tokens < 1:
            seconds = int(self.limit.get("retry_after", 1))
            raise Refused(429, f"Too Many Requests: retry after {seconds}", retry_after=seconds)

    # --- faults ---

    def _fault(self, name: str, params: dict[str, Any]) -> dict[str, Any] | None:
        for fault in self.faults:
            if fault.get("method", name).lower() != name.lower():
                continue
            if "chat" in fault and str(fault["chat"]) != str(params.get("chat_id")):
                continue
            if "holds" in fault and fault["holds"] not in json.dumps(_told(params), ensure_ascii=False):
                continue
            fault["times"] = int(fault.get("times", 1)) - 1
            if fault["times"] <= 0:
                self.faults.remove(fault)
            return fault
        return None

    async def _struck(self, fault: dict[str, Any], request: web.Request, call: dict[str, Any]) -> web.StreamResponse | None:
        kind = fault["kind"]
        call["outcome"] = f"fault {kind}"
        if kind == "429":
            seconds = fault.get("retry_after", 1)
            return _refusal(Refused(429, f"Too Many Requests: retry after {seconds}", retry_after=seconds))
        if kind == "refuse":
            return _refusal(Refused(int(fault["code"]), str(fault["description"]), **fault.get("parameters", {})))
        if kind == "html":
            return web.Response(status=int(fault.get("code", 502)), text="<html><body><h1>502 Bad Gateway</h1></body></html>", content_type="text/html")
        if kind == "cut_before":
            return _cut(request)
        if kind == "gate":
            await self.tell()
            await self.gates.setdefault(str(fault["gate"]), asyncio.Event()).wait()
        return None

    # --- files ---

    async def file(self, request: web.Request) -> web.StreamResponse:
        if request.match_info["token"] not in self.telegram.bots:
            return _refusal(Refused(401, "Unauthorized"))
        for path, content, _ in self.telegram.files.values():
            if path == request.match_info["path"]:
                fault = self._fault("download", {})
                if fault is not None and fault["kind"] == "cut_before":
                    return _cut(request)
                return web.Response(body=content, content_type="application/octet-stream")
        return _refusal(Refused(404, "Not Found"))


class _Control:
    """The operations of the control door; each method is one, its parameters the JSON body's keys."""

    def __init__(self, server: _Server) -> None:
        self._server = server
        self._telegram = server.telegram

    async def handle(self, request: web.Request) -> web.Response:
        operation = getattr(self, f"do_{request.match_info['operation']}")
        body = await request.json() if request.can_read_body else {}
        try:
            result = operation(**body)
            if asyncio.iscoroutine(result):
                result = await result
        except Refused as refused:
            return _refusal(refused)
        await self._server.tell()
        return web.json_response(result)

    def do_bot(self, token: str, username: str, **more: Any) -> Any:
        return self._telegram.add_bot(token, username, **more).me()

    def do_chat(self, id: int, **more: Any) -> Any:
        return self._telegram.add_chat(id, **more).public()

    def do_say(
        self, chat: int, user: int, text: str = "", bot: str = "", topic: int = 0, reply: int = 0, name: str = "", language: str = "",
        body: dict[str, Any] | None = None,
    ) -> Any:  # fmt: skip
        place = self._telegram.chats.get(chat) or self._telegram.add_chat(chat)
        place.started = True
        sender = self._telegram.person(user, name, language) if user else None
        whole = {**({"text": text} if text else {}), **(body or {})}
        return self._telegram.say(self._telegram.bot(bot), place, sender, whole, topic=topic, reply=reply)["message_id"]

    def do_press(self, chat: int, message: int, data: str, user: int, bot: str = "", name: str = "", force: bool = False) -> Any:
        sender = self._telegram.person(user, name)
        return self._telegram.press(self._telegram.bot(bot), self._telegram.chats[chat], message, data, sender, force=force)

    def do_stop(self, chat: int, draft: int = 0, bot: str = "") -> Any:
        """The person presses the stop of a draft (any, when none is named)."""
        place = self._telegram.chats[chat]
        _, topic, number = next(key for key, shown in place.drafts.items() if shown["can_stop"] and draft in (0, key[2]))
        where = {"message_thread_id": topic} if topic else {}
        body = {"chat": place.public(), "draft_id": number, **where}
        return self._telegram.update(self._telegram.bot(bot), "stopped_message_generation", body)

    def do_update(self, kind: str, body: dict[str, Any], bot: str = "") -> Any:
        return self._telegram.update(self._telegram.bot(bot), kind, body)

    def do_again(self, bot: str = "", times: int = 1) -> Any:
        """Deliver the newest update again, under its number, as if its confirmation had never come."""
        source = self._telegram.bot(bot)
        source.updates.extend([source.history[-1]] * times)
        return source.history[-1]["update_id"]

    def do_migrate(self, chat: int, to: int) -> Any:
        return self._telegram.migrate(self._telegram.chats[chat], to).public()

    def do_shut(self, chat: int, why: str = "bot was blocked by the user") -> Any:
        self._telegram.chats[chat].shut = why
        return True

    def do_file(self, ident: str, text: str = "", hex: str = "", size: int = -1) -> Any:
        content = bytes.fromhex(hex) if hex else text.encode()
        self._telegram.files[ident] = (f"files/{ident}", content, size if size >= 0 else len(content))
        return True

    def do_content(self, ident: str) -> Any:
        return self._telegram.files[ident][1].hex()

    def do_fault(self, **fault: Any) -> Any:
        self._server.faults.append(fault)
        return True

    def do_open(self, gate: str) -> Any:
        self._server.gates.setdefault(gate, asyncio.Event()).set()
        return True

    def do_limit(self, **limit: float) -> Any:
        self._server.limit = limit
        return True

    def do_webhook(self, url: str, bot: str = "") -> Any:
        self._telegram.bot(bot).webhook = url
        return True

    def do_screen(self, chat: int, bot: str = "") -> Any:
        place = self._telegram.chats[chat]
        drafts = [{"draft_id": key[2], "topic": key[1], **draft} for key, draft in place.drafts.items()]
        return {"messages": self._telegram.screen(place), "drafts": drafts, "reactions": {str(k): v for k, v in place.reactions.items()}}

    def do_forget(self, bot: str = "") -> Any:
        """Drop what waits for the bot, and all faults."""
        self._telegram.bot(bot).updates.clear()
        self._server.faults.clear()
        return True

    async def do_drained(self, bot: str = "", timeout: float = 10.0) -> Any:
        """True once the bot has confirmed everything; False after `timeout` s."""
        until = time.monotonic() + timeout
        async with self._server.changed:
            while self._telegram.bot(bot).updates and time.monotonic() < until:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._server.changed.wait(), max(0.01, until - time.monotonic()))
        return not self._telegram.bot(bot).updates

    def do_commands(self, bot: str = "") -> Any:
        return self._telegram.bot(bot).commands

    def do_state(self, bot: str = "") -> Any:
        found = self._telegram.bot(bot)
        return {"poll": found.poll, "waiting": len(found.updates), "allowed": found.allowed, "next": found.next_update}

    async def do_calls(self, since: int = 0, timeout: float = 0.0, poll: int = -1, bot: str = "") -> Any:
        """The calls from number `since` on; waits up to `timeout` s until there is one (or the bot's polls exceed `poll`)."""
        until = time.monotonic() + timeout
        async with self._server.changed:
            while len(self._server.calls) <= since and time.monotonic() < until and not (poll >= 0 and self._telegram.bot(bot).poll > poll):
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._server.changed.wait(), max(0.01, until - time.monotonic()))
        return self._server.calls[since:]


def _cut(request: web.Request) -> web.StreamResponse:
    if request.transport is not None:
        request.transport.abort()
    return web.Response(status=500)


async def _parameters(request: web.Request) -> dict[str, Any]:
    """Query, form, multipart or JSON; JSON in a form's field is read as such. Files are (name, content)."""
    params: dict[str, Any] = {key: _loose(key, value) for key, value in request.query.items()}
    if request.content_type == "application/json":
        params.update(await request.json() if request.can_read_body else {})
    elif request.content_type == "multipart/form-data":
        async for part in await request.multipart():
            name = str(getattr(part, "name", "") or "")
            filename = getattr(part, "filename", None)
            content = await part.read(decode=False)  # type: ignore[union-attr]
            params[name] = (filename, bytes(content)) if filename else _loose(name, bytes(content).decode())
    elif request.method == "POST":
        params.update({key: _loose(key, str(value)) for key, value in (await request.post()).items()})
    return params


def _loose(key: str, value: str) -> Any:
    if key in _LITERAL:
        return value
    if value.startswith(("[", "{")) or value.lstrip("-").isdigit():
        with contextlib.suppress(ValueError):
            return json.loads(value)
    return {"true": True, "false": False, "True": True, "False": False}.get(value, value)


def _told(params: dict[str, Any]) -> dict[str, Any]:
    return {k: {"file": v[0], "size": len(v[1])} if isinstance(v, tuple) else v for k, v in params.items()}


async def serve() -> None:
    server = _Server()
    app = web.Application(client_max_size=60 * 1024 * 1024)
    app.router.add_route("*", "/bot{token}/{method}", server.api)
    app.router.add_get("/file/bot{token}/{path:.+}", server.file)
    app.router.add_post("/control/{operation}", server.control.handle)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    print(json.dumps({"port": port}), flush=True)
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    await reader.read()
    await runner.cleanup()


if __name__ == "__main__":
    asyncio.run(serve())
