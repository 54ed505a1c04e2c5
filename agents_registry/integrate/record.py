"""What `va integrate` changed in other programs' files, so that `--remove` gives back the very bytes of before.

Only the place of the change is kept (the piece of text before and after it), never the whole file: it may hold
secrets of others. Without a record, or when the piece is no longer there, the entry is taken out by its name.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from agents_registry.integrate.files import replace_file

FILE = "integrations.json"
_DIRECTORIES = "directories"
"""Key of the directories that were made; all other keys are absolute paths."""


def remember(data_dir: Path | None, path: Path, before: str | None, after: str) -> None:
    """Keep how `before` became `after`; `before` None = the file was made by us. Raises OSError."""
    if data_dir is None:
        return
    records = _load(data_dir)
    known = records.get(str(path))
    created = before is None
    original = _undo(known, before) if known is not None and before is not None else None
    if known is not None and original is not None:  # a repeated integrate: what counts is the text before the first
        created, before = bool(known.get("created")), original
    records[str(path)] = {"created": created, **_piece(before or "", after)}
    _save(data_dir, records)


def undone(data_dir: Path | None, path: Path, text: str) -> str | None:
    """The text as it was before our change, where the record still fits; else None."""
    if data_dir is None:
        return None
    known = _load(data_dir).get(str(path))
    return _undo(known, text) if known is not None else None


def was_created(data_dir: Path | None, path: Path) -> bool:
    """Whether the file did not exist before."""
    return data_dir is not None and bool(_load(data_dir).get(str(path), {}).get("created"))


def forget(data_dir: Path | None, path: Path) -> None:
    """Drop the record. Raises OSError."""
    if data_dir is None:
        return
    records = _load(data_dir)
    if records.pop(str(path), None) is not None:
        _save(data_dir, records)


def remember_directories(data_dir: Path | None, made: list[Path]) -> None:
    """Keep which directories are about to be made for our files. Raises OSError."""
    if data_dir is None or not made:
        return
    records = _load(data_dir)
    known = _made(records)
    records[_DIRECTORIES] = {"made": [*known, *(str(path) for path in made if str(path) not in known)]}
    _save(data_dir, records)


def remove_directories(data_dir: Path | None) -> None:
    """Remove the directories made by us that are empty again. Raises OSError (of the record, never of a directory)."""
    if data_dir is None:
        return
    records = _load(data_dir)
    kept = []
    for path in sorted(_made(records), key=len, reverse=True):
        try:
            Path(path).rmdir()
        except FileNotFoundError:
            continue
        except OSError:  # somebody keeps something there
            kept.append(path)
    if _made(records):
        records.pop(_DIRECTORIES)
        if kept:
            records[_DIRECTORIES] = {"made": kept}
        _save(data_dir, records)


def _made(records: dict[str, dict[str, Any]]) -> list[str]:
    made = records.get(_DIRECTORIES, {}).get("made")
    return [path for path in made if isinstance(path, str)] if isinstance(made, list) else []


def _piece(before: str, after: str) -> dict[str, str]:
    start = 0
    while start < min(len(before), len(after)) and before[start] == after[start]:
        start += 1
    end = 0
    while end < min(len(before), len(after)) - start and before[len(before) - 1 - end] == after[len(after) - 1 - end]:
        end += 1
    return {"before": before[start : len(before) - end], "after": after[start : len(after) - end]}


def _undo(known: dict[str, Any], text: str) -> str | None:
    before, after = known.get("before"), known.get("after")
    if not isinstance(before, str) or not isinstance(after, str) or not after or text.count(after) != 1:
        return None
    return text.replace(after, before)


def _load(data_dir: Path) -> dict[str, dict[str, Any]]:
    """The records; an unreadable file counts as none, since every change can also be undone without it."""
    try:
        found = json.loads((data_dir / FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {key: value for key, value in found.items() if isinstance(value, dict)} if isinstance(found, dict) else {}


def _save(data_dir: Path, records: dict[str, dict[str, Any]]) -> None:
    if not records:
        (data_dir / FILE).unlink(missing_ok=True)
        return
    data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    replace_file(data_dir / FILE, (json.dumps(records, indent=2, ensure_ascii=False) + "\n").encode(), mode=0o600)
