"""Whose session is it: the order of evidence, what is stale, what disagrees."""

from __future__ import annotations

import itertools

import pytest

from agents_registry.errors import NotFoundError, RefusedError
from agents_registry.identify import Evidence, decide
from agents_registry.loader import load_registry

CLAUDE = load_registry(None).get("claude").identity
CODEX = load_registry(None).get("codex").identity
A, B, C = "aaaaaaaa-1111", "bbbbbbbb-2222", "cccccccc-3333"


@pytest.mark.requires("H4.identity-claude")
def test_after_clear_the_live_registry_wins_over_the_stale_environment() -> None:
    decision = decide([Evidence("launch_env", A, confirmed=True), Evidence("live_registry", B), Evidence("newest_of_cwd", C)], CLAUDE)
    assert (decision.session_id, decision.source, decision.note) == (B, "live_registry", "")


@pytest.mark.requires("H4.identity-codex")
def test_codex_is_known_by_the_metadata_of_the_call_itself() -> None:
    decision = decide([Evidence("newest_of_cwd", B), Evidence("launch_env", C), Evidence("call_meta", A)], CODEX)
    assert (decision.session_id, decision.source) == (A, "call_meta")


@pytest.mark.requires("H4.two-terminals")
def test_two_terminals_in_one_directory_are_told_apart_by_their_own_evidence() -> None:
    newest = Evidence("newest_of_cwd", B, candidates=2)
    assert decide([newest, Evidence("live_registry", A)], CLAUDE).session_id == A
    assert decide([newest, Evidence("live_registry", B)], CLAUDE).session_id == B


@pytest.mark.requires("H4.identity-disagrees")
@pytest.mark.parametrize(("one", "other"), list(itertools.permutations(["call_meta", "live_registry", "caller_word"], 2)))
def test_no_session_is_chosen_when_two_that_speak_of_this_call_disagree_and_both_are_named(one: str, other: str) -> None:
    order = ("hosted", "call_meta", "live_registry", "caller_word", "launch_env", "newest_of_cwd")
    with pytest.raises(RefusedError) as caught:
        decide([Evidence(one, A), Evidence(other, B)], order)
    assert caught.value.code == "identity_disagreement"
    assert A in caught.value.message
    assert B in caught.value.message
    assert caught.value.exit_code == 5


def test_the_same_id_in_another_case_is_no_disagreement() -> None:
    assert decide([Evidence("live_registry", A.upper()), Evidence("caller_word", A)], CLAUDE).session_id == A.upper()


def test_a_session_not_yet_in_the_store_is_believed_when_the_live_registry_says_the_same() -> None:
    assert decide([Evidence("live_registry", A), Evidence("caller_word", A, confirmed=False)], CLAUDE).source == "live_registry"


def test_a_session_that_the_store_does_not_have_is_refused_when_only_the_caller_says_it() -> None:
    with pytest.raises(NotFoundError, match=A):
        decide([Evidence("caller_word", A, confirmed=False), Evidence("newest_of_cwd", B)], CLAUDE)


def test_inside_a_host_the_threads_session_counts_and_a_caller_who_means_another_is_told() -> None:
    assert decide([Evidence("hosted", A), Evidence("launch_env", B), Evidence("live_registry", C)], CLAUDE).session_id == A
    with pytest.raises(RefusedError, match=f"{A}.*{B}"):
        decide([Evidence("hosted", A), Evidence("caller_word", B)], CLAUDE)


def test_the_start_environment_counts_only_while_the_store_shows_nothing_later() -> None:
    assert decide([Evidence("launch_env", A), Evidence("newest_of_cwd", B)], CLAUDE).session_id == A
    assert decide([Evidence("launch_env", A, confirmed=False), Evidence("newest_of_cwd", B)], CLAUDE).session_id == B


@pytest.mark.requires("H4.identity-candidate")
def test_the_newest_of_the_directory_is_a_candidate_and_is_named_as_one() -> None:
    alone = decide([Evidence("newest_of_cwd", A)], CLAUDE)
    assert alone.source == "newest_of_cwd"
    assert A in alone.note
    assert "2 more could be meant" in decide([Evidence("newest_of_cwd", A, candidates=3)], CLAUDE).note


def test_evidence_that_the_registry_does_not_trust_for_this_agent_counts_for_nothing() -> None:
    qwen = load_registry(None).get("qwen-code").identity
    with pytest.raises(NotFoundError, match="not known which session"):
        decide([Evidence("launch_env", A)], qwen, agent="Qwen Code")
    assert decide([Evidence("launch_env", A), Evidence("caller_word", B)], qwen).session_id == B


def test_without_any_evidence_the_answer_says_how_to_name_one() -> None:
    with pytest.raises(NotFoundError, match="--session ID"):
        decide([], CLAUDE)
