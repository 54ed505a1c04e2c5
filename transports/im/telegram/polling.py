"""Long polling: updates in, the confirmation only after the kit has accepted them.

Telegram has one cursor per bot: asking from `offset` confirms everything before it. So `offset` stays at the first update
that is not accepted yet; while there is one, what comes behind it is still fetched, once a second, so that one slow chat
(a large file, say) does not keep the others' button presses waiting.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Literal

from transports.im.errors import Ambiguous, Conflict, RetryAfter, Transient
from transports.im.platform import Inbox
from transports.im.telegram.client import BotApi
from transports.im.telegram.updates import ALLOWED, Reader, album_of, joined, merge_albums

BATCH = 100
_BEHIND_S = 1.0
_ALBUM_S = 0.4
_BACK_OFF_S = (1.0, 2.0, 4.0, 8.0, 15.0, 30.0)

State = Callable[[Literal["starting", "running", "retrying", "failed"], str], None]


class Poller:
    """`sleep` is asyncio.sleep; `log` takes a line for people."""

    def __init__(
        self, api: BotApi, reader: Reader, state: State, log: Callable[[str], None], sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        self._api, self._reader = api, reader
        self._state, self._log, self._sleep = state, log, sleep
        self._open: dict[int, asyncio.Future[None]] = {}
        """Updates that were given to the kit and are not known to be confirmed, in order."""
        self._failures = 0
        self._next = 0

    async def run(self, inbox: Inbox) -> None:
        """Until cancelled. Raises Conflict and BadCredentials, and what an acceptance raises when the process is ending."""
        try:
            while True:
                await self._once(inbox)
        finally:
            for waiting in self._open.values():
                waiting.cancel()

    async def _once(self, inbox: Inbox) -> None:
        updates = await self._fetch()
        if updates is None:
            return
        if album_of(updates) and len(updates) < BATCH:
            await self._sleep(_ALBUM_S)
            whole = await self._fetch(patient=False)
            if whole is None:
                return  # nothing was taken yet: it comes again
            updates = whole
        if not updates and not self._open:
            # nothing is left unconfirmed: after a week of silence Telegram counts from another number
            self._next = 0
        fresh = [update for update in updates if int(update["update_id"]) not in self._open]
        for update, others in merge_albums(fresh):
            self._take(inbox, update, others)
        self._settle()
        first = next(iter(self._open.values()), None)
        if first is not None:
            await asyncio.wait([first], timeout=_BEHIND_S)
            self._settle()

    async def _fetch(self, patient: bool = True) -> list[dict[str, Any]] | None:
        """The next updates; None when that did not work this time (and the pause for it is over)."""
        wait = self._api.poll_s if patient and not self._open else 0
        asked = {"offset": next(iter(self._open), self._next), "limit": BATCH, "timeout": wait, "allowed_updates": ALLOWED}
        try:
            answer = await self._api.call("getUpdates", asked, timeout=wait + 15.0, scope="bot")
        except RetryAfter as error:
            await self._sleep(min(error.seconds, 900.0))
            return None
        except Conflict as error:
            if "webhook" in str(error).lower():
                raise Conflict(
                    "A webhook is set for this bot, so another service receives its messages.",
                    hint="Remove it (deleteWebhook), or use another bot.",
                ) from None
            raise Conflict(
                "Somebody else receives with this bot's token, a second VibeAround perhaps.",
                hint="Stop the other one, or give this one a bot of its own.",
            ) from None
        except (Transient, Ambiguous) as error:
            await self._pause(str(error))
            return None
        if not isinstance(answer, list):
            await self._pause("Telegram's answer holds no updates.")
            return None
        if self._failures:
            self._log("Telegram can be reached again.")
        self._failures = 0
        self._state("running", "")
        return answer

    async def _pause(self, why: str) -> None:
        seconds = _BACK_OFF_S[min(self._failures, len(_BACK_OFF_S) - 1)]
        self._failures += 1
        if self._failures == 1:
            self._log(f"{why} Trying again.")
        if self._failures > 1:  # a single broken poll is the network's daily life
            self._state("retrying", why)
        await self._sleep(seconds)

    def _take(self, inbox: Inbox, update: dict[str, Any], others: list[dict[str, Any]]) -> None:
        number = int(update["update_id"])
        try:
            found = joined(self._reader.read(update), [self._reader.read(other) for other in others])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            # it would come back for ever: named by its number and kind, not by its content
            self._log(f"Update {number} ({', '.join(k for k in update if k != 'update_id')}) cannot be read: {type(error).__name__}.")
            found = None
        done: asyncio.Future[None]
        if found is None:
            done = asyncio.get_running_loop().create_future()
            done.set_result(None)
        else:
            done = asyncio.ensure_future(inbox.take(found))
        for each in (update, *others):
            self._open[int(each["update_id"])] = done

    def _settle(self) -> None:
        """Drop what is accepted from the front; an acceptance that failed is raised."""
        while self._open:
            number, done = next(iter(self._open.items()))
            if not done.done():
                return
            done.result()
            del self._open[number]
            self._next = number + 1


