"""The settings: one declared schema, one validated file (`settings.toml` in the data directory), overrides by environment.

Order: environment (`VIBEAROUND_THREADS__IDLE_SHUTDOWN_S`), then the file, then the default. Times are seconds. No
setting holds a secret; secrets are referenced where they are used (environment, file, keyring). Writing the file is
`settings_file.set_value`.
"""

from __future__ import annotations

import math
import os
import re
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

from agents_registry.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

FILE_NAME = "settings.toml"
_ENV_PREFIX = "VIBEAROUND_"
_DAY = 86_400.0
_DEFAULT_WORKSPACE = Path("workspaces")
_T = TypeVar("_T")


def _setting(
    default: _T, doc: str, low: float | None = None, high: float | None = None, one_of: tuple[str, ...] = ()
) -> _T:
    made: _T = field(default=default, metadata={"doc": doc, "low": low, "high": high, "one_of": one_of})
    return made


@dataclass(frozen=True, slots=True)
class Threads:
    idle_shutdown_s: float = _setting(600.0, "a host without work stops after this long; its thread stays open", 0.1, 30 * _DAY)
    pickup_wait_s: float = _setting(15.0, "how long a pickup waits for the issuing turn to end before it asks", 0, 600)
    replay_s: float = _setting(90.0, "how long an agent may take to load a session", 1, 3600)
    cancel_s: float = _setting(10.0, "how long an agent may take to end a cancelled turn before it is stopped", 0.1, 600)


@dataclass(frozen=True, slots=True)
class Handover:
    ttl_s: float = _setting(120.0, "life of a handover code", 1, 3600)
    max_misses: int = _setting(5, "unknown codes from one route or person before it is locked out", 1, 1000)
    lockout_s: float = _setting(600.0, "how long a lock-out lasts", 0.1, _DAY)
    max_codes: int = _setting(256, "codes that may be live at once", 1, 10_000)


@dataclass(frozen=True, slots=True)
class Hosts:
    lease_s: float = _setting(120.0, "how long an idle host lives without a supervisor", 1, _DAY)
    orphan_turn_s: float = _setting(3600.0, "how long a turn may run on without a supervisor", 1, 7 * _DAY)
    max_live: int = _setting(8, "agents running at once; the least recently used idle one stops first", 1, 500)
    end_detached: bool = _setting(True, "`va down` also ends what a tool call detached into a session of its own")
    handshake_s: float = _setting(90.0, "limit of each call before the first turn (start, load, resume)", 1, 3600)
    start_s: float = _setting(60.0, "how long a new host may take until it has said hello", 1, 600)
    stop_s: float = _setting(5.0, "limit of each step of stopping an agent: stdin closed, TERM, KILL", 0.1, 120)
    reclaim_s: float = _setting(5.0, "after a restart, how long a recorded host may take to come back", 0.1, 120)
    restart_burst: int = _setting(5, "deaths in a row before a child is given up", 1, 100)


@dataclass(frozen=True, slots=True)
class Routes:
    max_queue: int = _setting(16, "messages of one route that may wait; more are refused with a word", 1, 1000)
    keep_items: int = _setting(1000, "items kept for a route that nobody listens to", 1, 100_000)
    keep_days: float = _setting(7.0, "days that they are kept", 0.01, 365)
    passivate_s: float = _setting(300.0, "an idle route leaves memory after this long", 1, _DAY)


@dataclass(frozen=True, slots=True)
class Permissions:
    expire_s: float = _setting(_DAY, "an unanswered permission request expires after this long", 1, 30 * _DAY)


@dataclass(frozen=True, slots=True)
class Choices:
    expire_s: float = _setting(60.0, "a question of ours that nobody answers counts as its harmless option after this long", 1, 3600)


@dataclass(frozen=True, slots=True)
class Journal:
    keep_days: float = _setting(14.0, "days that texts of turns are kept", 0.01, 3650)


@dataclass(frozen=True, slots=True)
class Workspaces:
    default: Path = _setting(  # noqa: RUF009 - a frozen value, not a fresh one per instance
        _DEFAULT_WORKSPACE, "the default workspace; a relative path starts at the data directory"
    )


@dataclass(frozen=True, slots=True)
class Agents:
    default: str = _setting("", "id of the agent for new threads; empty: the first installed one")


@dataclass(frozen=True, slots=True)
class Reader:
    workers: int = _setting(4, "requests to agents' stores that may run at once", 1, 32)
    deadline_s: float = _setting(10.0, "limit of one request; a worker that hangs longer is replaced", 0.1, 600)
    idle_s: float = _setting(60.0, "the reader process stops after this long without a request", 1, _DAY)


@dataclass(frozen=True, slots=True)
class Web:
    port: int = _setting(0, "port of the page on loopback; 0: a free one, kept over restarts", 0, 65_535)
    login_s: float = _setting(300.0, "life of a login link", 1, 3600)


@dataclass(frozen=True, slots=True)
class Relay:
    recent_turns: int = _setting(6, "last turns that are carried word for word", 0, 1000)
    budget_tokens: int = _setting(16_000, "most tokens that a brief may take", 500, 1_000_000)
    window_share: float = _setting(0.2, "share of the target's window that a brief may take", 0.01, 0.9)
    decision_words_en: tuple[str, ...] = _setting(
        (
            "decided", "decision", "we will use", "we'll use", "let's use", "let's go with", "go with", "agreed", "conclusion", "concluded",
            "instead of", "switch to", "switched to", "settled on", "chose", "chosen", "root cause", "the cause is", "turns out", "confirmed",
            "the plan is",
        ),
        "words that mark a decision in English",
    )
    decision_words_zh: tuple[str, ...] = _setting(
        ("决定", "确认", "改为", "采用", "结论", "选择了", "问题在于", "原因是", "方案", "确定", "改用"), "words that mark a decision in Chinese"
    )


@dataclass(frozen=True, slots=True)
class Log:
    level: Literal["debug", "info", "warning", "error"] = _setting(
        "info", "what is logged", one_of=("debug", "info", "warning", "error")
    )


@dataclass(frozen=True, slots=True)
class Settings:
    threads: Threads = field(default_factory=Threads)
    handover: Handover = field(default_factory=Handover)
    hosts: Hosts = field(default_factory=Hosts)
    routes: Routes = field(default_factory=Routes)
    permissions: Permissions = field(default_factory=Permissions)
    choices: Choices = field(default_factory=Choices)
    journal: Journal = field(default_factory=Journal)
    workspaces: Workspaces = field(default_factory=Workspaces)
    agents: Agents = field(default_factory=Agents)
    reader: Reader = field(default_factory=Reader)
    web: Web = field(default_factory=Web)
    relay: Relay = field(default_factory=Relay)
    log: Log = field(default_factory=Log)


class Setting(NamedTuple):
    """The declaration of one setting; `kind` is number, count, flag, text, path or list."""

    section: str
    name: str
    kind: str
    default: Any
    doc: str
    low: float | None
    high: float | None
    one_of: tuple[str, ...]

    @property
    def key(self) -> str:
        return f"{self.section}.{self.name}"

    @property
    def variable(self) -> str:
        """The environment variable that overrides it."""
        return f"{_ENV_PREFIX}{self.section}__{self.name}".upper()


class Described(NamedTuple):
    """A setting with its value in force and where that comes from: an environment variable, `file`, or `default`."""

    setting: Setting
    value: Any
    source: str


_KINDS: dict[type, str] = {bool: "flag", int: "count", float: "number", str: "text", tuple: "list"}


def schema() -> Iterator[Setting]:
    """All settings in the order of their declaration."""
    defaults = Settings()
    for section in fields(Settings):
        for item in fields(getattr(defaults, section.name)):
            kind = "path" if isinstance(item.default, Path) else _KINDS[type(item.default)]
            meta = item.metadata
            yield Setting(
                section.name, item.name, kind, item.default, meta["doc"], meta["low"], meta["high"], meta["one_of"]
            )


def find(key: str) -> Setting:
    """The declaration of `section.name`. Raises NotFoundError with the nearest name."""
    known = {setting.key: setting for setting in schema()}
    found = known.get(key.strip().replace("-", "_"))
    if found is None:
        raise NotFoundError(f"There is no setting {key!r}.", hint=_did_you_mean(key, known) or "See `va settings list`.")
    return found


def path_of(data_dir: Path) -> Path:
    return data_dir / FILE_NAME


def load(data_dir: Path, environ: Mapping[str, str] | None = None) -> Settings:
    """The settings in force. Raises UsageError naming file, line and key (or variable) for anything not understood."""
    settings = Settings()
    for described in describe(data_dir, environ):
        section = getattr(settings, described.setting.section)
        changed = replace(section, **{described.setting.name: described.value})
        settings = replace(settings, **{described.setting.section: changed})
    return settings


def describe(data_dir: Path, environ: Mapping[str, str] | None = None) -> list[Described]:
    """Every setting with its value and source, in the order of the schema. Raises UsageError like `load`."""
    declared = list(schema())
    from_file = _read_file(path_of(data_dir), declared)
    from_env = _read_environ(os.environ if environ is None else environ, declared)
    result = []
    for setting in declared:
        source = "default"
        value = setting.default
        if setting.key in from_env:
            source, value = setting.variable, from_env[setting.key]
        elif setting.key in from_file:
            source, value = "file", from_file[setting.key]
        if setting.kind == "path":
            value = data_dir / Path(value).expanduser()
        result.append(Described(setting, value, source))
    return result


def parse_text(setting: Setting, text: str) -> Any:
    """The value that a word on a command line or in the environment means. Raises UsageError (without the key's place)."""
    text = text.strip()
    if setting.kind == "flag":
        word = text.lower()
        if word in ("true", "1", "yes", "on"):
            return True
        if word in ("false", "0", "no", "off"):
            return False
        raise UsageError(f"{setting.key} is true or false, not {text!r}.")
    if setting.kind in ("number", "count"):
        try:
            return check(setting, int(text) if setting.kind == "count" else float(text))
        except ValueError:
            kind = "a whole number" if setting.kind == "count" else "a number"
            raise UsageError(f"{setting.key} must be {kind}, not {text!r}.") from None
    if setting.kind == "list":
        return check(setting, [part.strip() for part in text.split(",") if part.strip()])
    return check(setting, text)


def check(setting: Setting, value: Any) -> Any:
    """The value in the setting's own type, within its bounds. Raises UsageError."""
    kind = setting.kind
    if kind == "flag":
        if not isinstance(value, bool):
            raise UsageError(f"{setting.key} must be true or false.")
        return value
    if kind in ("number", "count"):
        if isinstance(value, bool) or not isinstance(value, int if kind == "count" else (int, float)):
            raise UsageError(f"{setting.key} must be {'a whole number' if kind == 'count' else 'a number'}.")
        low, high = setting.low, setting.high
        if not math.isfinite(value) or (low is not None and value < low) or (high is not None and value > high):
            raise UsageError(f"{setting.key} must lie between {low:g} and {high:g}, not {value:g}.")
        return value if kind == "count" else float(value)
    if kind == "list":
        if not isinstance(value, list) or not all(isinstance(part, str) for part in value):
            raise UsageError(f"{setting.key} must be a list of texts.")
        return tuple(value)
    if not isinstance(value, str) or "\0" in value:
        raise UsageError(f"{setting.key} must be a text in quotes.")
    if setting.one_of and value not in setting.one_of:
        raise UsageError(f"{setting.key} must be one of {', '.join(setting.one_of)}, not {value!r}.")
    if kind == "path" and not value:
        raise UsageError(f"{setting.key} must be a path.")
    return value


def plain(value: Any) -> Any:
    """The value as JSON and people like it: whole numbers without a fraction, paths as text, tuples as lists."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, tuple):
        return list(value)
    return str(value) if isinstance(value, Path) else value


def parse_file(path: Path) -> tuple[dict[str, Any], str]:
    """The file's tables and its text; both empty when there is no file. Raises UsageError naming the line."""
    if path.is_fifo():  # reading it would wait for a writer, for ever
        raise UsageError(f"{path} cannot be read: it is a pipe, not a file.", hint="Put a file in its place.")
    try:
        text = path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return {}, ""
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.", hint="Check its owner and mode.") from error
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{path} is not UTF-8 text (byte {error.start}).", hint="Save it as UTF-8; it was left as it is."
        ) from error
    import tomllib

    try:
        return tomllib.loads(text), text
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UsageError(
            f"{path} is not valid TOML: {error}.", hint="Mend that line; the file was left as it is."
        ) from error


def _read_file(path: Path, declared: list[Setting]) -> dict[str, Any]:
    tables, text = parse_file(path)
    known = {setting.key: setting for setting in declared}
    sections = {setting.section for setting in declared}
    values: dict[str, Any] = {}
    for section, table in tables.items():
        where = f"{path}, line {_line_of(text, section, None)}"
        if section not in sections:
            raise UsageError(f"{where}: unknown section [{section}].", hint=_did_you_mean(section, sections))
        if not isinstance(table, dict):
            raise UsageError(f"{where}: {section} must be a section.", hint=f"Write [{section}] and its settings below it.")
        for name, value in table.items():
            key = f"{section}.{name}"
            where = f"{path}, line {_line_of(text, section, name)}"
            if key not in known:
                raise UsageError(f"{where}: unknown setting {key}.", hint=_did_you_mean(key, known))
            values[key] = _checked_at(where, known[key], value)
    return values


def _read_environ(environ: Mapping[str, str], declared: list[Setting]) -> dict[str, Any]:
    by_variable = {setting.variable: setting for setting in declared}
    values: dict[str, Any] = {}
    for variable, text in environ.items():
        if not variable.startswith(_ENV_PREFIX) or "__" not in variable:
            continue
        setting = by_variable.get(variable)
        if setting is None:
            raise UsageError(
                f"The environment variable {variable} names no setting.", hint=_did_you_mean(variable, by_variable)
            )
        try:
            values[setting.key] = parse_text(setting, text)
        except UsageError as error:
            raise UsageError(f"{variable}: {error.message}", hint=f"Unset or change {variable}.") from None
    return values


def _checked_at(where: str, setting: Setting, value: Any) -> Any:
    try:
        return check(setting, value)
    except UsageError as error:
        raise UsageError(f"{where}: {error.message}", hint=f"Default: {plain(setting.default)!r}.") from None


def _did_you_mean(word: str, known: Any) -> str:
    from difflib import get_close_matches

    near = get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"Did you mean {near[0]}?" if near else "See `va settings list`."


def _line_of(text: str, section: str, name: str | None) -> int:
    """Line (from 1) where a section, or a key of it, is written in a file that parses; 1 when it is spelled unusually."""
    quoted = rf"[\"']?{re.escape(section)}[\"']?"
    current = ""
    first = 0
    for number, line in enumerate(text.split("\n"), 1):
        header = re.match(r"\s*\[+\s*[\"']?([^\"'\].]+?)[\"']?\s*[\].]", line)
        if header:
            current = header[1]
        if (header and current == section) or (not current and re.match(rf"\s*{quoted}\s*[.=]", line)):
            first = first or number
            dotted = rf"\s*{quoted}\s*(\.|=\s*\{{.*?)\s*[\"']?{re.escape(name or '')}[\"']?\s*="
            if name and not header and re.match(dotted, line):
                return number
        elif name and current == section and re.match(rf"\s*[\"']?{re.escape(name)}[\"']?\s*[.=]", line):
            return number
    return first or 1
