"""The code store: one winner, exact expiry, lock-out of the one who guesses, nothing burnt by a failure."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from actors.handover import ALPHABET, HandoverStore
from tests.unit.support import Loop
from transports.bus.vocabulary.conversation import Failed
from transports.bus.vocabulary.handover import ClaimCode, Claimed, CodeIssued, IssueCode, SettleClaim


@pytest.fixture
def loop(tmp_path: Path) -> Iterator[Loop]:
    made = Loop(tmp_path)
    yield made
    made.close()


def store(loop: Loop, letters: str = "", **settings: float) -> HandoverStore:
    source = itertools.cycle(letters or ALPHABET)
    made = HandoverStore(
        loop.switch, loop.clock, random_letter=lambda: next(source), ttl_s=settings.get("ttl_s", 120.0),
        max_misses=int(settings.get("max_misses", 5)), lockout_s=settings.get("lockout_s", 600.0),
    )
    loop.add("handover", made.receive)
    return made


def issue(loop: Loop) -> str:
    answer = loop.ask("handover", IssueCode("demo", "s1", "/w"))
    assert isinstance(answer, CodeIssued)
    return answer.code


def claim(loop: Loop, code: str, route: str = "cli:local:a", user: str = "u", at: float | None = None) -> Claimed | Failed:
    received = loop.clock.monotonic() if at is None else at
    answer = loop.ask("handover", ClaimCode(code, route, user, received))
    assert isinstance(answer, Claimed | Failed)
    return answer


@pytest.mark.requires("B2")
def test_a_used_code_is_gone(loop: Loop) -> None:
    store(loop)
    code = issue(loop)
    assert isinstance(claim(loop, code), Claimed)
    loop.ask("handover", SettleClaim(code, "cli:local:a", True))
    refused = claim(loop, code)
    assert isinstance(refused, Failed)
    assert refused.error[0] == 6


@pytest.mark.requires("B3")
def test_a_code_lives_to_the_last_moment_and_not_one_more(loop: Loop) -> None:
    store(loop)
    first, second = issue(loop), issue(loop)
    start = loop.clock.monotonic()
    assert isinstance(claim(loop, first, at=start + 119.999), Claimed)
    late = claim(loop, second, at=start + 120.0)
    assert isinstance(late, Failed)
    assert late.error[1] == "code_invalid"
    assert "hand over" in late.error[3]


def test_a_claim_made_in_time_outlives_the_time(loop: Loop) -> None:
    store(loop)
    code = issue(loop)
    claim(loop, code)
    loop.pass_time(200.0)
    again = claim(loop, code)
    assert isinstance(again, Claimed)
    loop.ask("handover", SettleClaim(code, "cli:local:a", False))
    assert isinstance(claim(loop, code), Failed)


def test_a_failed_pickup_gives_the_code_back(loop: Loop) -> None:
    store(loop)
    code = issue(loop)
    claim(loop, code)
    loop.ask("handover", SettleClaim(code, "cli:local:a", False))
    assert isinstance(claim(loop, code, "cli:local:b"), Claimed)


@pytest.mark.requires("I3")
def test_of_many_racers_one_wins_and_the_others_hear_why(loop: Loop) -> None:
    store(loop)
    code = issue(loop)
    answers = [claim(loop, code, f"cli:local:{n}", f"u{n}") for n in range(50)]
    winners = [a for a in answers if isinstance(a, Claimed)]
    assert len(winners) == 1
    assert {a.error[1] for a in answers if isinstance(a, Failed)} == {"code_claimed"}


def test_a_stranger_cannot_settle_the_claim_of_another(loop: Loop) -> None:
    store(loop)
    code = issue(loop)
    claim(loop, code, "cli:local:a")
    loop.ask("handover", SettleClaim(code, "cli:local:b", True))
    assert isinstance(claim(loop, code, "cli:local:a"), Claimed)


@pytest.mark.requires("B31")
def test_guesses_lock_out_the_chat_and_the_person_and_nobody_else(loop: Loop) -> None:
    store(loop)
    code = issue(loop)
    answers = [claim(loop, f"ZZ{a}{b}", "cli:local:bad", "mallory") for a, b in itertools.product("23456789", repeat=2)]
    codes = [a.error[1] for a in answers if isinstance(a, Failed)]
    assert codes[:5] == ["code_invalid"] * 5
    assert set(codes[5:]) == {"locked_out"}
    assert claim(loop, code, "cli:local:other", "mallory").TAG == "failed"  # type: ignore[union-attr]
    assert isinstance(claim(loop, code, "cli:local:good", "alice"), Claimed)


def test_a_lock_out_ends(loop: Loop) -> None:
    store(loop)
    for n in range(5):
        claim(loop, f"ZZZ{n + 2}", "cli:local:bad", "m")
    loop.pass_time(601.0)
    code = issue(loop)
    assert isinstance(claim(loop, code, "cli:local:bad", "m"), Claimed)


@pytest.mark.requires("H4.code-form")
def test_live_codes_never_collide(loop: Loop) -> None:
    store(loop, letters="AAAAAAAABBBB")
    assert issue(loop) != issue(loop)


@pytest.mark.requires("H4.code-restart")
def test_an_unknown_code_says_that_a_restart_may_be_why(loop: Loop) -> None:
    store(loop)
    refused = claim(loop, "ABCD")
    assert isinstance(refused, Failed)
    assert "restart" in refused.error[2]


def test_no_more_codes_live_at_once_than_set_and_the_refusal_says_so(loop: Loop) -> None:
    made = HandoverStore(
        loop.switch, loop.clock, random_letter=itertools.cycle(ALPHABET).__next__, ttl_s=120.0, max_misses=5, lockout_s=600.0, max_codes=3
    )
    loop.add("handover", made.receive)
    answers = [loop.ask("handover", IssueCode("demo", "s1", "/w")) for _ in range(4)]
    assert [type(a).__name__ for a in answers] == ["CodeIssued"] * 3 + ["Failed"]
    assert answers[-1].error[0] == 8
    loop.pass_time(121.0)
    assert isinstance(loop.ask("handover", IssueCode("demo", "s1", "/w")), CodeIssued)
