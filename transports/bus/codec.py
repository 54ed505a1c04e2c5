"""How a message becomes bytes: a positional msgpack array `[tag, field, field, ...]`.

Positional because it is the smallest and fastest form that still evolves: a sender may append fields (an older
receiver ignores them) and a receiver may know more fields than the sender sent (they take their defaults).
Fields hold only msgpack's own types; each is checked against its annotation when a message is decoded.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable
from typing import Any, TypeVar

import msgpack

from agents_registry.errors import UsageError

MAX_BODY = 1 << 20
"""Bytes; what is larger travels by reference (a file under `<data>/files`)."""

T = TypeVar("T")
_BY_TAG: dict[str, tuple[type[Any], tuple[tuple[str, tuple[type, ...], Any], ...]]] = {}
_MISSING = object()


@typing.dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field,))
def message(tag: str, *, preview: bool = False) -> Callable[[type[T]], type[T]]:
    """Class decorator: registers a dataclass under its wire tag, which must never change its meaning.

    A `preview` message may be dropped when its receiver is slow (`PREVIEW` on the class).
    """

    def register(cls: type[T]) -> type[T]:
        frozen = dataclasses.dataclass(frozen=True, slots=True)(cls)
        hints = typing.get_type_hints(frozen)
        fields = []
        for f in dataclasses.fields(frozen):  # type: ignore[arg-type]
            default: Any = _MISSING
            if f.default is not dataclasses.MISSING:
                default = f.default
            elif f.default_factory is not dataclasses.MISSING:
                default = f.default_factory
            fields.append((f.name, _accepted(hints[f.name]), default))
        if tag in _BY_TAG:
            raise ValueError(f"two messages with the tag {tag!r}")
        _BY_TAG[tag] = (frozen, tuple(fields))
        frozen.TAG = tag  # type: ignore[attr-defined]
        frozen.PREVIEW = preview  # type: ignore[attr-defined]
        return frozen

    return register


def _accepted(annotation: Any) -> tuple[type, ...]:
    origin = typing.get_origin(annotation)
    if origin is types.UnionType or origin is typing.Union:
        return tuple(t for arg in typing.get_args(annotation) for t in _accepted(arg))
    base = origin or annotation
    if base is Any:
        return (object,)
    if base is tuple:
        return (list, tuple)
    if base is float:
        return (float, int)
    return (base,)


def encode(msg: Any) -> bytes:
    """Bytes of a registered message. Raises UsageError when they exceed MAX_BODY."""
    _, fields = _BY_TAG[msg.TAG]
    body: bytes = msgpack.packb([msg.TAG, *(getattr(msg, name) for name, _, _ in fields)], use_bin_type=True)
    if len(body) > MAX_BODY:
        raise UsageError(
            f"a {msg.TAG} message of {len(body)} bytes is larger than the bus carries ({MAX_BODY}).",
            hint="Shorten the text, or put it into a file and name the file.",
            code="too_large",
        )
    return body


def decode(body: bytes) -> Any:
    """The message that `body` holds. Raises UsageError for a body that is none (unknown tag, wrong types, torn)."""
    if len(body) > MAX_BODY:
        raise UsageError(f"a bus message of {len(body)} bytes is larger than {MAX_BODY}.", code="too_large")
    try:
        parts = msgpack.unpackb(body, raw=False, use_list=True, strict_map_key=False)
    except (ValueError, msgpack.exceptions.UnpackException) as error:
        raise UsageError(f"a bus message could not be read: {error}.", code="bad_message") from error
    if not isinstance(parts, list) or not parts or not isinstance(parts[0], str):
        raise UsageError("a bus message is not an array that starts with its tag.", code="bad_message")
    known = _BY_TAG.get(parts[0])
    if known is None:
        raise UsageError(
            f"the message {parts[0][:40]!r} is not known here.",
            hint="The two sides may be of different versions: run `va down` and `va up`.",
            code="unknown_message",
        )
    cls, fields = known
    values: list[Any] = []
    for position, (name, accepted, default) in enumerate(fields, 1):
        if position < len(parts):
            value = parts[position]
            if not isinstance(value, accepted) or (isinstance(value, bool) and bool not in accepted and object not in accepted):
                raise UsageError(f"the field {name} of a {parts[0]} message has the wrong type.", code="bad_message")
        elif default is _MISSING:
            raise UsageError(f"a {parts[0]} message lacks its field {name}.", code="bad_message")
        else:
            value = default() if callable(default) else default
        values.append(value)
    return cls(*values)


def known_tags() -> dict[str, type[Any]]:
    """Every registered message by its tag, for golden tests and documentation."""
    return {tag: cls for tag, (cls, _) in _BY_TAG.items()}
