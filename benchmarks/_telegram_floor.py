"""The least that a bot can do: a bare aiohttp client on the Bot API. `python _telegram_floor.py URL-WITH-TOKEN`.

Polls, and answers each text with "at TEXT TIME": the time (monotonic, seconds) at which it had the update. With "idle" for
the address it opens a session and does nothing, for its memory. Says "ready" when it runs; ends with its stdin.
"""

import asyncio
import sys
import time

import aiohttp


async def main():
    loop = asyncio.get_running_loop()
    over = loop.run_in_executor(None, sys.stdin.read)
    async with aiohttp.ClientSession() as session:
        print("ready", flush=True)
        work = asyncio.ensure_future(poll(session, sys.argv[1])) if sys.argv[1] != "idle" else None
        await over
        if work is not None:
            work.cancel()


async def poll(session, base):
    offset = 0
    while True:
        async with session.post(f"{base}/getUpdates", json={"timeout": 50, "offset": offset}) as answer:
            updates = (await answer.json())["result"]
        for update in updates:
            offset = update["update_id"] + 1
            message = update["message"]
            body = {"chat_id": message["chat"]["id"], "text": f"at {message['text'].split()[-1]} {time.monotonic():.6f}"}
            async with session.post(f"{base}/sendMessage", json=body) as answer:
                await answer.read()


asyncio.run(main())
