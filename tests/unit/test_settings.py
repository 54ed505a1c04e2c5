"""Settings: one validated file, overrides, and edits that lose nothing."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

import pytest

from agents_registry.errors import NotFoundError, RefusedError, UsageError
from transports import settings, settings_file


def write(directory: Path, text: str) -> Path:
    path = settings.path_of(directory)
    path.write_text(text, "utf-8")
    return path


def test_without_a_file_the_documented_defaults_hold(tmp_path: Path) -> None:
    loaded = settings.load(tmp_path, {})
    assert (loaded.threads.idle_shutdown_s, loaded.handover.ttl_s, loaded.handover.max_misses) == (600, 120, 5)
    assert (loaded.handover.lockout_s, loaded.hosts.lease_s, loaded.hosts.max_live) == (600, 120, 8)
    assert (loaded.routes.max_queue, loaded.permissions.expire_s, loaded.agents.default) == (16, 86_400, "")
    assert (loaded.hosts.orphan_turn_s, loaded.journal.keep_days, loaded.choices.expire_s) == (3600, 14, 60)
    assert loaded.workspaces.default == tmp_path / "workspaces"


@pytest.mark.requires("H2.settings-env")
def test_the_environment_wins_over_the_file_and_the_file_over_the_default(tmp_path: Path) -> None:
    write(tmp_path, "[threads]\nidle_shutdown_s = 30\npickup_wait_s = 3\n")
    loaded = settings.load(tmp_path, {"VIBEAROUND_THREADS__IDLE_SHUTDOWN_S": "0.5", "VIBEAROUND_HOST_ID": "h"})
    assert (loaded.threads.idle_shutdown_s, loaded.threads.pickup_wait_s) == (0.5, 3)
    sources = {one.setting.key: one.source for one in settings.describe(tmp_path, {"VIBEAROUND_HOSTS__MAX_LIVE": "2"})}
    assert sources["threads.pickup_wait_s"] == "file"
    assert sources["hosts.max_live"] == "VIBEAROUND_HOSTS__MAX_LIVE"
    assert sources["log.level"] == "default"


@pytest.mark.requires("H2.settings-env")
@pytest.mark.parametrize("setting", list(settings.schema()), ids=lambda setting: setting.key)
def test_every_setting_can_be_given_by_its_variable_and_has_a_line_of_explanation(
    setting: settings.Setting, tmp_path: Path
) -> None:
    value = settings.plain(setting.default)
    text = ",".join(value) if isinstance(value, list) else str(value)
    described = settings.describe(tmp_path, {setting.variable: text})
    (found,) = (one for one in described if one.setting.key == setting.key)
    assert found.source == setting.variable
    assert found.value == (tmp_path / "workspaces" if setting.kind == "path" else setting.default)
    assert type(found.value) is type(setting.default)
    assert setting.doc
    assert "\n" not in setting.doc


@pytest.mark.requires("H2.settings-validated")
@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("# c\n[threads]\nidle_shutdown = 5\n", 3, "Did you mean threads.idle_shutdown_s?"),
        ("[threds]\n", 1, "Did you mean threads?"),
        ("\n\nthreads.idle = 5\n", 3, "unknown setting threads.idle"),
        ("[hosts]\n[handover]\nttl_s = 'x'\n", 3, "handover.ttl_s must be a number"),
        ("[handover]\nttl_s = 0\n", 2, "between 1 and 3600, not 0"),
        ("[handover]\nttl_s = inf\n", 2, "between"),
        ("[hosts]\nmax_live = 2.5\n", 2, "whole number"),
        ("[hosts]\nmax_live = true\n", 2, "whole number"),
        ("[hosts]\nend_detached = 1\n", 2, "true or false"),
        ("[log]\nlevel = 'loud'\n", 2, "debug, info, warning, error"),
        ("[relay]\ndecision_words_en = ['a', 1]\n", 2, "list of texts"),
        ("threads = 5\n", 1, "must be a section"),
        ("threads = { idle = 5 }\n", 1, "unknown setting threads.idle"),
        ('["threads"]\n"idle" = 5\n', 2, "unknown setting threads.idle"),
        ("[threads]\nidle_shutdown_s = \n", 2, "not valid TOML"),
        ("[threads]\na = 1\na = 2\n", 3, "not valid TOML"),
    ],
)
def test_what_is_not_understood_is_named_with_file_line_and_the_nearest_name(
    tmp_path: Path, text: str, line: int, words: str
) -> None:
    path = write(tmp_path, text)
    with pytest.raises(UsageError) as caught:
        settings.load(tmp_path, {})
    assert str(path) in caught.value.message
    assert f"line {line}" in caught.value.message
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("variable", "text", "words"),
    [
        ("VIBEAROUND_THREADS__IDLE_SHUTDOWN", "5", "VIBEAROUND_THREADS__IDLE_SHUTDOWN_S"),
        ("VIBEAROUND_HOSTS__MAX_LIVE", "many", "whole number"),
        ("VIBEAROUND_HOSTS__END_DETACHED", "maybe", "true or false"),
        ("VIBEAROUND_HANDOVER__TTL_S", "nan", "between"),
    ],
)
def test_a_wrong_variable_is_named(tmp_path: Path, variable: str, text: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        settings.load(tmp_path, {variable: text})
    assert variable in caught.value.message
    assert words in str(caught.value)


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    settings.path_of(tmp_path).write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="not UTF-8"):
        settings.load(tmp_path, {})


def test_a_pipe_in_place_of_the_file_is_named_instead_of_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "settings.toml")
    with pytest.raises(UsageError, match="it is a pipe, not a file"):
        settings.load(tmp_path, {})


def test_a_relative_workspace_starts_at_the_data_directory_and_a_tilde_at_home(tmp_path: Path) -> None:
    loaded = settings.load(tmp_path, {"VIBEAROUND_WORKSPACES__DEFAULT": "ws"})
    assert loaded.workspaces.default == tmp_path / "ws"
    loaded = settings.load(tmp_path, {"VIBEAROUND_WORKSPACES__DEFAULT": "~/ws"})
    assert loaded.workspaces.default == Path.home() / "ws"


@pytest.mark.requires("H2.settings-kept")
def test_a_set_keeps_comments_order_and_all_other_keys(tmp_path: Path) -> None:
    path = write(tmp_path, "# mine\n[handover] # codes\nttl_s = 90 # short\nmax_misses = 3\n\n[log]\nlevel = 'debug'\n")
    settings_file.set_value(tmp_path, "handover.ttl_s", "60")
    settings_file.set_value(tmp_path, "hosts.max_live", "3")
    text = path.read_text()
    assert text.startswith("# mine\n[handover] # codes\nttl_s = 60 # short\nmax_misses = 3\n\n[log]\nlevel = 'debug'\n")
    assert tomllib.loads(text)["hosts"] == {"max_live": 3}
    assert path.stat().st_mode & 0o777 == 0o600
    assert settings.load(tmp_path, {}).handover.ttl_s == 60


@pytest.mark.requires("H2.settings-kept")
@pytest.mark.parametrize("content", [b"[threads\nx", b"\xff\xfe", b"threads = 1\n"])
def test_a_file_that_is_not_understood_is_never_overwritten(tmp_path: Path, content: bytes) -> None:
    path = settings.path_of(tmp_path)
    path.write_bytes(content)
    with pytest.raises(RefusedError) as caught:
        settings_file.set_value(tmp_path, "threads.idle_shutdown_s", "5")
    assert str(path) in str(caught.value)
    assert path.read_bytes() == content


def test_a_wrong_value_or_key_changes_nothing(tmp_path: Path) -> None:
    path = write(tmp_path, "[log]\nlevel = 'info'\n")
    for key, text, kind in (("log.level", "loud", UsageError), ("log.levle", "info", NotFoundError)):
        with pytest.raises(kind, match=r"log\.lev"):
            settings_file.set_value(tmp_path, key, text)
    assert path.read_text() == "[log]\nlevel = 'info'\n"


def test_a_linked_file_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "dotfiles").mkdir()
    (tmp_path / "data").mkdir()
    target = tmp_path / "dotfiles" / "va.toml"
    target.write_text("# mine\n")
    settings.path_of(tmp_path / "data").symlink_to(target)
    settings_file.set_value(tmp_path / "data", "hosts.max_live", "3")
    assert settings.path_of(tmp_path / "data").is_symlink()
    assert target.read_text().startswith("# mine\n")
    assert "max_live = 3" in target.read_text()


def test_an_unset_key_has_its_default_again(tmp_path: Path) -> None:
    settings_file.set_value(tmp_path, "relay.decision_words_zh", "决定, 结论")
    assert settings.load(tmp_path, {}).relay.decision_words_zh == ("决定", "结论")
    assert settings_file.unset_value(tmp_path, "relay.decision_words_zh") is True
    assert settings_file.unset_value(tmp_path, "relay.decision_words_zh") is False
    assert "采用" in settings.load(tmp_path, {}).relay.decision_words_zh


def test_nothing_is_left_beside_the_file_after_a_set(tmp_path: Path) -> None:
    settings_file.set_value(tmp_path, "hosts.max_live", "3")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".settings.lock", "settings.toml"]
