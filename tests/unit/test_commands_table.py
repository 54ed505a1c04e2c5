"""Who may give which command, walked role by command."""

from __future__ import annotations

import pytest

from actors.commands.table import ALIASES, COMMANDS, DEEDS, ROLES, allowed, rule

ALL = [(name, form) for name, entry in COMMANDS.items() for form in entry.rules]
VIEWER = {("help", ""), ("status", "")}
MEMBER = VIEWER | {("stop", ""), ("pickup", "")}
AGENT = {
    ("help", ""), ("status", ""), ("handover", ""), ("route", ""), ("workspace", "list"), ("agent", "list"), ("profile", "list"),
    ("session", "list"), ("mode", "list"),
}
EXPECTED = {"viewer": VIEWER, "member": MEMBER, "owner": set(ALL), "agent": AGENT}


@pytest.mark.requires("H6.roles", "M3.role-table")
@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize(("name", "form"), ALL)
def test_each_role_may_give_exactly_the_commands_of_its_row(role: str, name: str, form: str) -> None:
    assert allowed(role, name, form=form) == ((name, form) in EXPECTED[role])


@pytest.mark.parametrize(("name", "form"), ALL)
@pytest.mark.parametrize("role", ["", "stranger", "OWNER", "bridge"])
def test_a_stranger_may_give_no_command(role: str, name: str, form: str) -> None:
    assert not allowed(role, name, form=form)


@pytest.mark.parametrize(
    ("deed", "may"),
    [("prompt", {"member", "owner"}), ("answer_once", {"member", "owner"}), ("answer_lasting", {"owner"}), ("approve", {"owner"})],
)
def test_deeds_without_a_command_word_have_their_rows_too_and_no_agent_does_them(deed: str, may: set[str]) -> None:
    assert {role for role in ROLES if allowed(role, deed)} == may


def test_the_form_follows_from_the_argument_where_it_is_not_told() -> None:
    assert allowed("agent", "workspace")
    assert allowed("agent", "workspace", "list")
    assert not allowed("agent", "workspace", "ws_1")
    assert not allowed("agent", "agent", "/compact")


def test_a_command_that_does_not_exist_is_allowed_to_nobody() -> None:
    assert not allowed("owner", "format")


def test_what_answers_at_once_changes_no_binding() -> None:
    assert not [pair for pair in ALL if rule(*pair).when == "at_once" and rule(*pair).changes_binding]


def test_pickup_alone_is_claimed_at_receipt() -> None:
    assert [pair for pair in ALL if rule(*pair).when == "claimed"] == [("pickup", "")]


def test_modes_and_the_agents_own_commands_run_in_order_without_changing_a_binding() -> None:
    for name, form in (("mode", "switch"), ("plan", ""), ("agent", "pass")):
        assert (rule(name, form).when, rule(name, form).changes_binding) == ("in_order", False)


def test_aliases_name_commands_and_hide_none() -> None:
    assert set(ALIASES.values()) <= set(COMMANDS)
    assert not set(ALIASES) & set(COMMANDS)
    assert not set(DEEDS) & set(COMMANDS)
