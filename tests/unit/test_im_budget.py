"""The send budget: used up to its limit, fair among chats, answers before previews, pauses kept."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transports.im.budget import AGE_S, Budget
from transports.im.platform import Rate


@pytest.mark.requires("S1.budget")
def test_two_hundred_chats_streaming_at_once_use_the_budget_and_none_starves() -> None:
    """Each chat always has a preview waiting; simulated time."""
    bot, chat = Rate(30.0, 30.0), Rate(1.0, 3.0)
    budget = Budget(bot, 0.0)
    now, granted = 0.0, Counter[str]()
    for number in range(200):
        budget.enter(f"c{number}", chat, False, now)
    while now < 60.0:
        ticket = budget.grant(now)
        if ticket is not None:
            granted[ticket.chat] += 1
            budget.enter(ticket.chat, chat, False, now)
            continue
        wake = budget.wake_at(now)
        assert wake is not None
        now = max(now + 1e-6, wake)
    total = sum(granted.values())
    assert 0.95 * (30 * 60) <= total <= 30 * 60 + 30 + 1
    assert len(granted) == 200
    assert max(granted.values()) - min(granted.values()) <= 1


@pytest.mark.requires("S1.budget")
def test_an_answer_goes_before_previews_and_an_old_preview_before_a_new_answer() -> None:
    budget = Budget(Rate(1.0, 1.0), 0.0)
    many = Rate(100.0, 100.0)
    first = budget.enter("a", many, False, 0.0)
    assert budget.grant(0.0) is first
    preview = budget.enter("a", many, False, 0.0)
    answer = budget.enter("b", many, True, 0.5)
    assert budget.grant(1.0) is answer
    budget.enter("b", many, True, 1.5)
    assert budget.grant(AGE_S + 1.0) is preview


def test_a_pause_of_one_chat_holds_only_that_chat() -> None:
    rate = Rate(10.0, 10.0)
    budget = Budget(Rate(100.0, 100.0), 0.0)
    budget.pause("a", rate, 35.0, 0.0)
    held = budget.enter("a", rate, True, 0.0)
    free = budget.enter("b", rate, False, 0.0)
    assert budget.grant(0.0) is free
    assert budget.grant(34.9) is None
    assert budget.wake_at(1.0) == 35.0
    assert budget.grant(35.0) is held
    budget.pause("", rate, 50.0, 36.0)
    later = budget.enter("b", rate, True, 36.0)
    assert budget.grant(49.0) is None
    assert budget.grant(50.0) is later


def test_who_does_not_want_to_go_any_more_takes_nobodys_place() -> None:
    budget = Budget(Rate(1.0, 1.0), 0.0)
    gone = budget.enter("a", Rate(1.0, 1.0), True, 0.0)
    stays = budget.enter("b", Rate(1.0, 1.0), False, 0.0)
    budget.leave(gone)
    assert budget.grant(0.0) is stays
    assert budget.wake_at(0.0) is None


@given(
    st.lists(st.tuples(st.integers(0, 5), st.booleans(), st.floats(0.0, 2.0)), min_size=1, max_size=60),
    st.floats(0.5, 20.0), st.floats(1.0, 5.0),
)  # fmt: skip
def test_no_chat_and_no_bot_ever_goes_over_its_bucket(steps: list[tuple[int, bool, float]], per_s: float, burst: float) -> None:
    chat, bot = Rate(per_s, burst), Rate(2 * per_s, 2 * burst)
    budget, now = Budget(bot, 0.0), 0.0
    times: list[tuple[float, str]] = []
    waiting = 0
    for number, urgent, pause in steps:
        budget.enter(f"c{number}", chat, urgent, now)
        waiting += 1
        now += pause
        while (ticket := budget.grant(now)) is not None:
            times.append((now, ticket.chat))
            waiting -= 1
    while waiting:
        wake = budget.wake_at(now)
        assert wake is not None
        now = max(wake, now + 1e-9)
        while (ticket := budget.grant(now)) is not None:
            times.append((now, ticket.chat))
            waiting -= 1
    for name, rate in [("", bot), *((f"c{n}", chat) for n in range(6))]:
        mine = [t for t, c in times if not name or c == name]
        for i in range(len(mine)):
            for j in range(i, len(mine)):
                assert j - i + 1 <= rate.burst + (mine[j] - mine[i]) * rate.per_s + 1 + 1e-6
