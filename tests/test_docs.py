"""What README and docs say is so: commands, settings, variables, files, codes and quoted errors exist as written."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from actors.commands.table import COMMANDS
from agents_registry import errors, launch
from agents_registry.loader import load_registry
from transports import settings
from transports.cli.main import cli

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
_HIDDEN = "\0"


def page(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def code_of(text: str) -> Iterator[str]:
    """Every piece of code: the lines of fenced blocks, and what stands between backticks."""
    for number, part in enumerate(re.split(r"^```\w*$", text, flags=re.MULTILINE)):
        if number % 2:
            yield from part.splitlines()
        else:
            yield from re.findall(r"`([^`\n]+)`", part)


def rows_of(text: str, heading: str) -> list[list[str]]:
    """The cells of the table under a heading, without its first two lines."""
    body = text.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    rows = [line for line in body.splitlines() if line.startswith("|")]
    return [[cell.strip().replace(_HIDDEN, "|") for cell in row.replace("\\|", _HIDDEN).strip("|").split("|")] for row in rows[2:]]


def commands_of(text: str) -> Iterator[list[str]]:
    """The words after each `va` that begins a command."""
    for code in code_of(text):
        for part in re.split(r"&&|;|\|", code.split("  #")[0]):
            found = re.match(r"\s*(?:\$ )?va((?: +[^\s]+)*)\s*$", part)
            if found:
                yield found[1].split()


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_each_va_command_and_option_named_in_a_page_exists(path: Path) -> None:
    wrong = []
    for words in commands_of(path.read_text("utf-8")):
        command: click.Command = cli
        context = click.Context(cli, info_name="va")
        for word in words:
            if word.startswith("--"):
                known = {option for parameter in command.params for option in parameter.opts} | {"--help"}
                if word not in known:
                    wrong.append(f"va {' '.join(words)}: {word}")
            elif isinstance(command, click.Group) and re.fullmatch(r"[a-z-]+", word):
                found = command.get_command(context, word)
                if found is None:
                    wrong.append(f"va {' '.join(words)}")
                    break
                command, context = found, click.Context(found, info_name=word, parent=context)
    assert wrong == []


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_each_setting_named_in_a_page_exists(path: Path) -> None:
    known = {one.key for one in settings.schema()}
    sections = {one.section for one in settings.schema()}
    named = {code for code in code_of(path.read_text("utf-8")) if re.fullmatch(r"[a-z]+\.[a-z_]+", code)}
    assert {name for name in named if name.split(".")[0] in sections and name not in known} <= {"agents.toml", "settings.toml"}


def test_the_times_that_a_page_gives_for_a_setting_are_its_default() -> None:
    defaults = {one.key: settings.plain(one.default) for one in settings.schema()}
    given = [
        (path.name, key, number)
        for path in PAGES
        for key, number in re.findall(r"`([a-z]+\.[a-z_]+)` \((\d+)(?: s)?\)", path.read_text("utf-8"))
    ]
    assert given
    assert [one for one in given if defaults.get(one[1]) != int(one[2])] == []


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_each_file_and_link_named_in_a_page_is_in_the_repository(path: Path) -> None:
    text = path.read_text("utf-8")
    links = {target.split("#")[0] for target in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in target}
    missing = [target for target in links if target and not (path.parent / target).exists()]
    named = {code.rstrip("/") for code in code_of(text) if re.fullmatch(r"(actors|transports|agents_registry|tests|scripts|docs)/[\w./-]*", code)}
    missing += [name for name in named if not (ROOT / name).exists()]
    assert missing == []


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_each_make_verb_named_in_a_page_exists(path: Path) -> None:
    verbs = set(re.findall(r"^([a-z-]+):.*## ", page("Makefile"), re.MULTILINE))
    named = {code.split()[1] for code in code_of(path.read_text("utf-8")) if re.match(r"make [a-z]", code)}
    assert named - verbs == set()


def test_the_table_of_variables_is_what_agents_are_given() -> None:
    rows = rows_of(page("docs/handover.md"), "Variables")
    told = {name.strip("`"): meaning.replace("`", "") for name, meaning in rows}
    host = told.pop(launch.HOST_VARIABLE)
    assert host.startswith("hosted processes only")
    assert told == {name: meaning.replace("`", "") for name, meaning in launch.AGENT_VARIABLES.items()}


def test_the_table_of_exit_codes_is_the_one_of_the_errors() -> None:
    told = {int(code): meaning for code, meaning in rows_of(page("docs/handover.md"), "Exit codes")}
    kinds: list[type[errors.VibeAroundError]] = [errors.VibeAroundError, *errors.VibeAroundError.__subclasses__()]
    of_errors = {kind.exit_code for kind in kinds}
    assert set(told) == {0, *of_errors, 130, 141}
    in_words = dict(re.findall(r"(\d) ([a-z][^,.]*)[,.]", " ".join((errors.__doc__ or "").split())))
    assert in_words
    for code, words in in_words.items():
        assert told[int(code)].startswith(words), code


def test_the_table_of_commands_is_the_one_of_the_chats() -> None:
    rows = rows_of(page("docs/handover.md"), "Commands in a chat")
    told = {usage.replace("`", ""): (words, role) for usage, words, role in rows}
    ranks = ["viewer", "member", "owner"]
    wanted = {}
    for entry in COMMANDS.values():
        least = min((one.role for one in entry.rules.values()), key=ranks.index)
        wanted[entry.usage] = (entry.help, least)
    assert told == wanted


def test_the_table_of_what_integrate_writes_is_the_registrys(tmp_path: Path) -> None:
    rows = rows_of(page("docs/handover.md"), "What `va integrate` writes")
    told = {name: (mcp.strip("`"), skill.strip("`")) for name, mcp, skill in rows}
    registry = load_registry(tmp_path)
    for spec in (registry.get(name) for name in registry.ids()):
        if spec.mcp is None and spec.skills is None:
            continue
        mcp, skill = told[spec.name]
        assert mcp in spec.mcp.user if spec.mcp is not None else mcp.startswith("none"), spec.id
        assert spec.skills is not None
        assert any(skill.startswith(place) for place in spec.skills.user), spec.id


def test_the_evidence_of_an_agent_is_what_the_registry_lists(tmp_path: Path) -> None:
    rows = rows_of(page("docs/handover.md"), "Whose session is it?")
    registry = load_registry(tmp_path)
    for column, agent in ((2, "claude"), (3, "codex")):
        assert tuple(row[0] for row in rows if row[column]) == registry.get(agent).identity


def _texts() -> str:
    """All texts of the product, one a line, implicit concatenation joined; what is filled in is the hidden character."""
    found = []
    for folder in ("actors", "transports", "agents_registry"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.JoinedStr):
                    found.append("".join(str(v.value) if isinstance(v, ast.Constant) else _HIDDEN for v in node.values))
                elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                    found.append(re.sub(r"\{\w+(?::\w+)?\}", _HIDDEN, node.value))
    return "\n".join(found)


def test_each_error_that_troubleshooting_quotes_is_one_of_the_product() -> None:
    texts = _texts()
    symptoms = [line.split("|")[1] for line in page("docs/troubleshooting.md").splitlines() if line.startswith("| ")]
    quoted = [quote for symptom in symptoms for quote in re.findall(r'"([^"]+)"', symptom)]
    assert len(quoted) > 30
    pieces = [piece.strip(" ,:(") for quote in quoted for piece in quote.split("…")]
    assert [piece for piece in pieces if len(piece) > 5 and piece not in texts] == []
