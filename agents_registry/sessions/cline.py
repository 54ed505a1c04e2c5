"""Cline's store: `<editor>/User/globalStorage/saoudrizwan.claude-dev/tasks/<id>/`; Roo Code and Kilo Code share the form.

A task has two logs of one conversation: ui_messages.json is what was shown (no call ids; streamed texts as runs of
partial entries), api_conversation_history.json what the model saw (Anthropic's messages, with harness text around the
human's words). Counts come from the file that is given; a conversation from the model's log where it is there.
Cline's command line keeps the model's log alone: `~/.cline/data/sessions/<id>/<id>.messages.json`, <id>.json beside it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from agents_registry.sessions.anthropic_blocks import blocks
from agents_registry.sessions.filestore import (
    FileStore,
    Meta,
    object_of,
    objects_in,
    raw_head,
    read_document,
    sidecar,
    text_of,
)
from agents_registry.sessions.jsonl import Record
from agents_registry.sessions.neutral import Conversation, ImageRef, Text, Thinking, ToolResult
from agents_registry.sessions.paths import home
from agents_registry.sessions.places import config_home
from agents_registry.sessions.port import SessionInfo
from agents_registry.sessions.steps import Call, Kind, Part, Step
from agents_registry.sessions.times import seconds

_EDITORS = ("Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf", "Trae", "Antigravity", "Kiro")
_API = ("api_conversation_history.json", "claude_messages.json")
_HUMAN = re.compile(r"<(task|feedback|user_message|answer|user_input)(?: [^>]*)?>\n?(.*?)\n?</\1>", re.DOTALL)
_LOG = ".messages.json"
_TOOL_TEXT = re.compile(r"\[(\w+)(?: for '(.*?)')?\] Result:\s*(.*)", re.DOTALL)
_DIRECTORY = re.compile(r"# Current (?:Working|Workspace) Directory \(([^)\n]+)\)")


class ClineStore(FileStore):
    """See the module. Every editor that is a variant of VS Code has a root of its own."""

    agent: str = "cline"
    extension: ClassVar[str] = "saoudrizwan.claude-dev"
    others: ClassVar[tuple[str, ...]] = ("roo-code", "roo-cline", "kilo-code", "kilocode")
    """Words of a path that tell another agent of the same form."""
    leaf_keys: ClassVar[tuple[str, ...]] = ()

    def roots(self, env: Mapping[str, str]) -> list[Path]:
        mac = home(env) / "Library" / "Application Support"
        servers = [home(env) / name / "data" for name in (".vscode-server", ".cursor-server")]
        bases = [config_home(env) / editor for editor in _EDITORS] + [mac / editor for editor in _EDITORS] + servers
        places = [base / "User" / "globalStorage" / self.extension for base in bases]
        return [places[0], *(place for place in places[1:] if place.is_dir()), *self.own_roots(env)]

    def own_roots(self, env: Mapping[str, str]) -> list[Path]:
        """Roots outside of editors."""
        return [home(env) / ".cline"]

    def files(self, root: Path) -> Iterator[Path]:
        for task in (root / "tasks").glob("*"):
            found = (task / name for name in ("ui_messages.json", *_API))
            if (first := next((path for path in found if path.is_file()), None)) is not None:
                yield first
        yield from (root / "data" / "sessions").glob(f"*/*{_LOG}")

    def is_document(self, path: Path) -> bool:
        return True

    def records(self, path: Path, meta: Meta) -> Iterator[tuple[int, Record]]:
        """The entries of the list that the document is, all on line 1."""
        document = read_document(path, meta)
        for entry in document if isinstance(document, list) else []:
            if isinstance(entry, dict):
                meta.objects += 1
                yield 1, entry
        if isinstance(document, dict):
            meta.objects += 1
            if text_of(document, "sessionId") and "version" in document and "projectHash" not in document:
                meta.ours += 1
                meta.id = text_of(document, "sessionId")
                yield from ((1, message) for message in objects_in(document, "messages"))

    def steps(self, records: Iterable[tuple[int, Record]], meta: Meta) -> Iterator[Step]:
        shown: list[Record] = []
        for _, entry in records:
            if text_of(entry, "type") in ("say", "ask") and "ts" in entry:
                meta.ours += 1
                shown.append(entry)
            elif text_of(entry, "role") in ("user", "assistant") and "content" in entry and "type" not in entry:
                meta.ours += 1
                yield from _api_step(entry, meta)
            else:
                meta.strange(text_of(entry, "type")[:40])
        yield from _shown(shown, meta)

    def beside(self, path: Path, root: Path | None, meta: Meta) -> None:
        meta.id = path.parent.name
        if path.name.endswith(_LOG):
            about = sidecar(path.with_name(path.name.removesuffix(_LOG) + ".json"))
            meta.cwd = text_of(about, "cwd") or text_of(about, "workspace_root") or meta.cwd
            meta.title = text_of(object_of(about, "metadata"), "title") or text_of(about, "title")
            meta.parent_id = text_of(about, "parent_session_id")
            return
        item = sidecar(path.with_name("history_item.json"))
        if not item and root is not None:
            history = read_document_or_none(root / "state" / "taskHistory.json")
            item = next((entry for entry in history if str(entry.get("id")) == meta.id), {})
        meta.cwd = text_of(item, "workspace") or text_of(item, "cwdOnTaskInitialization") or meta.cwd
        meta.title = text_of(item, "task") or meta.title
        if not meta.cwd and meta.hints:
            meta.cwd = meta.hints[0]

    def read(self, info: SessionInfo) -> Conversation:
        model_log = next((path for name in _API if (path := info.path.with_name(name)).is_file()), None)
        if model_log is None or model_log == info.path:
            return super().read(info)
        made = super().read(
            SessionInfo(info.agent, info.id, info.cwd, info.title, info.updated_at, model_log, info.store_root)
        )
        made.path = info.path
        return made if made.turns else super().read(info)

    def recognises(self, path: Path) -> bool:
        others = any(word in part.lower() for part in path.parts for word in self.others)
        return path.suffix == ".json" and not others and super().recognises(path)

    def torn(self, path: Path) -> bool:
        start = raw_head(path)
        return start.lstrip().startswith(b"[") and b'"say"' in start and b'"ts"' in start


def _shown(entries: list[Record], meta: Meta) -> Iterator[Step]:
    """What was shown: the task, feedback, runs of streamed text, tools and their output."""
    task_seen = False
    for index, entry in enumerate(entries):
        at = seconds(entry.get("ts"))
        say = text_of(entry, "say") or text_of(entry, "ask")
        text = text_of(entry, "text")
        if say == "api_req_started":
            meta.hints.extend(_DIRECTORY.findall(text)[:1])
        elif say == "text" and not task_seen:
            task_seen = True
            yield Step(Kind.USER, [Text(text, 1, at), *_images(entry)], 1, at)
        elif say in ("user_feedback", "user_feedback_diff"):
            yield Step(Kind.USER, [Text(text, 1, at), *_images(entry)], 1, at)
        elif say == "text":
            following = entries[index + 1] if index + 1 < len(entries) else {}
            if entry.get("partial") is True and text_of(following, "say") == "text":
                continue  # the next entry is this one, further on
            yield Step(Kind.AGENT, [Text(text, 1, at)], 1, at)
        elif say in ("completion_result", "followup", "plan_mode_respond") and text:
            yield Step(Kind.AGENT, [Text(text, 1, at)], 1, at)
        elif say == "reasoning":
            yield Step(Kind.AGENT, [Thinking(text, 1, at)], 1, at)
        elif say == "tool" and entry.get("partial") is not True:
            yield Step(Kind.AGENT, [_shown_tool(text)], 1, at)
        elif say == "command" and entry.get("partial") is not True:
            yield Step(Kind.AGENT, [Call("", "execute_command", {"command": text})], 1, at)
        elif say == "command_output" and text:
            yield Step(Kind.AGENT, [ToolResult("", text, False, 0, 1, at)], 1, at)


def _shown_tool(text: str) -> Call:
    try:
        given = json.loads(text)
    except (ValueError, RecursionError):
        given = {}
    given = given if isinstance(given, dict) else {}
    return Call("", text_of(given, "tool") or "tool", {key: value for key, value in given.items() if key != "tool"})


def _images(entry: Record) -> list[ImageRef]:
    images = entry.get("images")
    return [ImageRef("image", "inline", len(str(image)) * 3 // 4, 1) for image in images or []] if isinstance(images, list) else []


def _api_step(message: Record, meta: Meta) -> Iterator[Step]:
    """A message of the model's log. Roo marks what a condensation or truncation replaced; that is not seen any more."""
    at = seconds(message.get("ts"))
    parts = blocks(message.get("content"), 1, at)
    hidden = bool(message.get("condenseParent") or message.get("truncationParent"))
    kind = text_of(object_of(message, "metadata"), "kind")
    if message.get("isSummary") is True or "compaction" in kind:
        text = "\n".join(part.text for part in parts if isinstance(part, Text))
        yield Step(Kind.COMPACT, [Text(text, 1, at)], 1, at, carried=not hidden)
    elif text_of(message, "role") == "assistant":
        yield Step(Kind.AGENT, parts, 1, at, carried=not hidden)
    else:
        words: list[Part] = []
        results: list[Part] = []
        for part in parts:
            if not isinstance(part, Text):
                (results if isinstance(part, ToolResult) else words).append(part)
                continue
            meta.hints.extend(_DIRECTORY.findall(part.text)[:1])
            if said := [text for _, text in _HUMAN.findall(part.text)]:
                words.append(Text("\n".join(said), 1, at))
            elif match := _TOOL_TEXT.match(part.text):
                # Versions that call tools in XML put the results into the next message as text.
                results += [Call("", match[1], {"target": match[2] or ""}), ToolResult("", match[3], False, 0, 1, at)]
        if results:
            yield Step(Kind.AGENT, results, 1, at, carried=not hidden)
        if any(isinstance(part, Text) for part in words) or (words and not results):
            yield Step(Kind.USER, words, 1, at, carried=not hidden)


def read_document_or_none(path: Path) -> list[Record]:
    """The objects of a list in a JSON file, none when it cannot be read."""
    try:
        value: Any = read_document(path, Meta())
    except OSError:
        return []
    return objects_in({"value": value}, "value")


STORE = ClineStore()
