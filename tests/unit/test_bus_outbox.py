"""The queue to the io thread: what is put wakes it, and its end meets no wake-up on its way."""

from __future__ import annotations

import os
import select
import threading

from transports.bus.outbox import Outbox


def readable(outbox: Outbox[int]) -> bool:
    return bool(select.select([outbox.fd], [], [], 0)[0])


def test_what_is_put_wakes_once_until_the_wake_up_is_taken_back() -> None:
    outbox: Outbox[int] = Outbox()
    outbox.put(1)
    assert readable(outbox)
    outbox.begin()
    assert not readable(outbox) and list(outbox.items) == [1]
    outbox.put(2)
    assert readable(outbox)
    outbox.close()
    outbox.close()


def test_a_wake_up_never_meets_a_file_that_took_the_closed_ones_number() -> None:
    """Many closes, each against a thread that is putting: no error there, and nothing in the file that comes after."""
    failed: list[BaseException] = []
    for _ in range(200):
        outbox: Outbox[int] = Outbox()
        began = threading.Event()

        def put(outbox: Outbox[int] = outbox, began: threading.Event = began) -> None:
            try:
                for number in range(50):
                    outbox.put(number)
                    outbox._armed = False  # as after `begin`, so that each wakes anew
                    began.set()
            except OSError as error:
                failed.append(error)

        thread = threading.Thread(target=put)
        thread.start()
        assert began.wait(10)
        outbox.close()
        ends = os.pipe2(os.O_NONBLOCK) if hasattr(os, "pipe2") else os.pipe()
        thread.join(10)
        assert not select.select([ends[0]], [], [], 0)[0]
        for end in ends:
            os.close(end)
    assert failed == []
