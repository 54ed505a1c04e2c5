"""The stores of Kimi Code (TypeScript, ~/.kimi-code) and of its predecessor kimi-cli (Python, ~/.kimi).

Kimi Code: `sessions/<project>/<session id>/agents/<agent>/wire.jsonl`; what counts are context.append_message and
context.append_loop_event, since turn.prompt repeats the prompt; sub-agents are sibling folders of `main`. kimi-cli:
`sessions/<md5 of the directory>/<session id>/context.jsonl`, messages in the shape of OpenAI's API; its wire.jsonl
repeats them for display (MoonshotAI/kimi-cli, src/kimi_cli/soul/context.py).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from agents_registry.sessions.filestore import FileStore, Meta, object_of, objects_in, sidecar, text_of
from agents_registry.sessions.jsonl import JsonLines, Record
from agents_registry.sessions.neutral import Text, Thinking, ToolResult, flat_text
from agents_registry.sessions.openai_messages import chat_step, content_parts
from agents_registry.sessions.paths import home
from agents_registry.sessions.places import named
from agents_registry.sessions.steps import Call, Kind, Step
from agents_registry.sessions.times import seconds

_WIRE = (
    *("context.", "turn.", "config.", "tools.", "llm.", "usage.", "permission.", "plan_mode.", "full_compaction."),
    *("runtime.", "profile.", "agent.", "plugin.", "token_counting.", "prompt.", "goal.", "task.", "skill.", "mcp."),
)
_MACHINE = ("<system>", "<system-reminder>")
_COMPACTED = "<system>Previous context has been compacted"


class KimiStore(FileStore):
    """See the module. `KIMI_CODE_HOME` and `KIMI_SHARE_DIR` name the two roots."""

    agent: str = "kimi"

    def roots(self, env: Mapping[str, str]) -> list[Path]:
        return [
            named(env, "KIMI_CODE_HOME") or home(env) / ".kimi-code",
            named(env, "KIMI_SHARE_DIR") or home(env) / ".kimi",
        ]

    def files(self, root: Path) -> Iterator[Path]:
        sessions = root / "sessions"
        yield from sessions.glob("*/*/agents/*/wire.jsonl")
        yield from sessions.glob("*/*/context.jsonl")
        yield from sessions.glob("*/*.jsonl")

    def is_subagent(self, path: Path) -> bool:
        return path.parent.parent.name == "agents" and path.parent.name != "main"

    def steps(self, records: Iterable[tuple[int, Record]], meta: Meta) -> Iterator[Step]:
        python_kind = 0
        for line, record in records:
            kind = text_of(record, "type")
            if kind:
                if kind.startswith(_WIRE) or (kind == "metadata" and "protocol_version" in record):
                    meta.ours += 1
                    yield from _wire(line, record, kind, meta)
                else:
                    meta.strange(kind[:40])
            elif role := text_of(record, "role"):
                if role.startswith("_"):
                    python_kind += 1
                    meta.ours += 1
                elif (step := _context(line, record)) is not None:
                    meta.ours += bool(python_kind)
                    yield step
            else:
                meta.strange("no type")

    def live(self, steps: Iterable[Step]) -> Iterable[Step]:
        """Undo takes back that many prompts with all that followed, never beyond a compaction; clear takes all."""
        kept: list[Step] = []
        for step in steps:
            if step.id == "context.clear":
                kept.clear()
            elif step.id == "context.undo":
                for _ in range(int(step.stored or 0)):
                    last = next((i for i in range(len(kept) - 1, -1, -1) if kept[i].kind in (Kind.USER, Kind.COMPACT)), None)
                    if last is None or kept[last].kind is Kind.COMPACT:
                        break
                    del kept[last:]
            else:
                kept.append(step)
        return kept

    def beside(self, path: Path, root: Path | None, meta: Meta) -> None:
        if path.parent.parent.name == "agents":
            self._code_session(path, root, meta)
        elif path.name == "context.jsonl":
            self._python_session(path.parent.name, path.parent.parent.name, sidecar(path.parent / "state.json"), root, meta)
        elif root is not None and path.parent.parent == root / "sessions":
            self._python_session(path.stem, path.parent.name, {}, root, meta)

    def _code_session(self, path: Path, root: Path | None, meta: Meta) -> None:
        session = path.parents[2]
        state = sidecar(session / "state.json")
        meta.id = session.name
        if path.parent.name != "main":
            meta.id, meta.parent_id = f"{session.name}/{path.parent.name}", session.name
        else:
            meta.title = text_of(state, "title")
        meta.cwd = meta.cwd or text_of(state, "cwd") or text_of(state, "workDir")
        meta.created_at = seconds(state.get("createdAt")) or meta.created_at
        if meta.cwd or root is None:
            return
        try:
            for _, record in JsonLines(root / "session_index.jsonl"):
                if record.get("sessionId") == session.name:
                    meta.cwd = text_of(record, "workDir") or meta.cwd
        except OSError:
            pass  # the index is derived and may be missing

    def _python_session(self, session_id: str, folder: str, state: Record, root: Path | None, meta: Meta) -> None:
        meta.id = session_id
        meta.title = text_of(state, "custom_title") or meta.title
        if root is None:
            return
        digest = folder.rpartition("_")[2]  # sessions of another host carry its name before the hash
        for work_dir in objects_in(sidecar(root / "kimi.json"), "work_dirs"):
            directory = text_of(work_dir, "path")
            if directory and hashlib.md5(directory.encode(), usedforsecurity=False).hexdigest() == digest:
                meta.cwd = directory
        meta.project = digest

    def place(self, meta: Meta, cwd: str | None) -> None:
        if not meta.cwd and cwd and hashlib.md5(cwd.encode(), usedforsecurity=False).hexdigest() == meta.project:
            meta.cwd = cwd


def _wire(line: int, record: Record, kind: str, meta: Meta) -> Iterator[Step]:
    at = seconds(record.get("time"))
    if kind == "metadata":
        meta.created_at = seconds(record.get("created_at"))
    elif kind == "config.update":
        meta.cwd = meta.cwd or text_of(record, "cwd")
        meta.model = text_of(record, "modelAlias") or meta.model
        if meta.model or meta.cwd:
            yield Step(Kind.NOTE, [], line, at, cwd=text_of(record, "cwd"), model=meta.model)
    elif kind in ("llm.request", "usage.record", "profile.bind"):
        model = text_of(record, "modelAlias") or text_of(record, "model")
        if model and model != meta.model:
            meta.model = model
            yield Step(Kind.NOTE, [], line, at, model=model)
    elif kind == "context.append_message":
        if (step := _message(object_of(record, "message"), line, at)) is not None:
            yield step
    elif kind == "context.append_loop_event":
        if (step := _event(object_of(record, "event"), line, at)) is not None:
            yield step
    elif kind == "context.apply_compaction":
        yield Step(Kind.COMPACT, [Text(text_of(record, "summary") or text_of(record, "contextSummary"), line, at)], line, at)
    elif kind == "context.undo":
        count = record.get("count")
        yield Step(Kind.NOTE, [], line, at, id=kind, stored=str(min(count, 10_000)) if isinstance(count, int) else "0")
    elif kind == "context.clear":
        yield Step(Kind.NOTE, [], line, at, id=kind)


def _message(message: Record, line: int, at: float | None) -> Step | None:
    role = text_of(message, "role")
    parts = content_parts(message.get("content"), line, at)
    if role == "user":
        origin = message.get("origin")
        if isinstance(origin, dict) and origin.get("kind") not in ("user", None):
            return None
        step = Step(Kind.USER, parts, line, at)
        human = [part for part in parts if not (isinstance(part, Text) and part.text.lstrip().startswith(_MACHINE))]
        if human and len(human) < len(parts):
            step.stored = step.text
            step.parts = human
        return step if parts else None
    if role == "assistant":
        parts += [
            Call(text_of(call, "id"), text_of(object_of(call, "function"), "name"), object_of(call, "function").get("arguments"))
            for call in objects_in(message, "toolCalls")
        ]
        return Step(Kind.AGENT, parts, line, at)
    if role == "tool":
        text = flat_text(message.get("content"))
        return Step(Kind.AGENT, [ToolResult(text_of(message, "toolCallId"), text, False, 0, line, at)], line, at)
    return None


def _event(event: Record, line: int, at: float | None) -> Step | None:
    kind = text_of(event, "type")
    if kind == "content.part":
        part = object_of(event, "part")
        if text_of(part, "type") == "text":
            return Step(Kind.AGENT, [Text(text_of(part, "text"), line, at)], line, at)
        if text_of(part, "type") == "think":
            return Step(Kind.AGENT, [Thinking(text_of(part, "think"), line, at)], line, at)
    elif kind == "tool.call":
        return Step(Kind.AGENT, [Call(text_of(event, "toolCallId"), text_of(event, "name"), event.get("args"))], line, at)
    elif kind == "tool.result":
        result = object_of(event, "result")
        failed = result.get("isError") is True or result.get("is_error") is True
        text = flat_text(result.get("output"))
        return Step(Kind.AGENT, [ToolResult(text_of(event, "toolCallId"), text, failed, 0, line, at)], line, at)
    return None


def _context(line: int, record: Record) -> Step | None:
    """A message of kimi-cli's context: machine text is a user message that opens with <system>."""
    step = chat_step(record, line)
    if step is None or step.kind is not Kind.USER:
        return step
    if step.text.startswith(_COMPACTED):
        summary = step.text.partition("</system>")[2].strip()
        return Step(Kind.COMPACT, [Text(summary, line)], line)
    if step.text.lstrip().startswith(_MACHINE):
        return None
    return step


STORE = KimiStore()
