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
_BY_TAG: dict[str, type[Any]] = {}
_MISSING = object()


@typing.dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field,))
def message(tag: str, *, preview: bool = False) -> Callable[[type[T]], type[T]]:
    """Class decorator: registers a dataclass under its wire tag, which must never change its meaning.

    A `preview` message may be dropped when its receiver is slow (`PREVIEW` on the class).
    """

    def register(cls: type[T]) -> type[T]:
        if tag in _BY_TAG:
            raise ValueError(f"two messages with the tag {tag!r}")
        cls.__doc__ = cls.__doc__ or cls.__name__  # else dataclass() computes one from the signature, which is slow
        made = dataclasses.dataclass(init=False, repr=False, eq=False, slots=True)(cls)
        _BY_TAG[tag] = made
        for name, shared in _SHARED.items():
            setattr(made, name, shared)
        made.TAG = tag  # type: ignore[attr-defined]
        made.PREVIEW = preview  # type: ignore[attr-defined]
        return made

    return register


# A message class is frozen, compared and shown by value like any frozen dataclass. What dataclass() would compile for
# each class at import time (half a millisecond a class, in every process of ours) is shared here, or made at first use.


def _init_at_first_use(self: Any, *args: Any, **kwargs: Any) -> None:
    cls = type(self)
    cls.__init__ = _compile_init(cls)
    cls.__init__(self, *args, **kwargs)


def _compile_init(cls: type[Any]) -> Any:
    """`__init__` of a message class; it sets the slots by their descriptors, past the frozen `__setattr__`."""
    space: dict[str, Any] = {"_missing": _MISSING}
    params, lines = [], []
    for name, _, default in _fields(cls):
        space[f"_set_{name}"] = cls.__dict__[name].__set__
        value = name
        if default is _MISSING:
            params.append(name)
        elif callable(default):
            space[f"_make_{name}"] = default
            params.append(f"{name}=_missing")
            value = f"{name} if {name} is not _missing else _make_{name}()"
        else:
            space[f"_default_{name}"] = default
            params.append(f"{name}=_default_{name}")
        lines.append(f" _set_{name}(self, {value})")
    exec(f"def __init__({', '.join(['self', *params])}):\n" + ("\n".join(lines) or " pass"), space)
    space["__init__"].__qualname__ = f"{cls.__qualname__}.__init__"
    return space["__init__"]


def _values(msg: Any) -> tuple[Any, ...]:
    return tuple([getattr(msg, name) for name in msg.__match_args__])  # a list is faster here than a generator


def _repr(self: Any) -> str:
    shown = ", ".join(f"{name}={value!r}" for name, value in zip(self.__match_args__, _values(self), strict=True))
    return f"{type(self).__qualname__}({shown})"


def _eq(self: Any, other: object) -> Any:
    return _values(self) == _values(other) if type(other) is type(self) else NotImplemented


def _hash(self: Any) -> int:
    return hash(_values(self))


def _no_setattr(self: Any, name: str, value: Any) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _no_delattr(self: Any, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


_SHARED: dict[str, Any] = {
    "__init__": _init_at_first_use, "__repr__": _repr, "__eq__": _eq, "__hash__": _hash, "__setattr__": _no_setattr,
    "__delattr__": _no_delattr, "__reduce__": lambda self: (type(self), _values(self)),
}


_FIELDS: dict[type[Any], tuple[tuple[str, tuple[type, ...], Any], ...]] = {}


def _fields(cls: type[Any]) -> tuple[tuple[str, tuple[type, ...], Any], ...]:
    """(name, accepted types, default or factory or _MISSING) of each field, worked out when the class is first used."""
    known = _FIELDS.get(cls)
    if known is not None:
        return known
    hints = typing.get_type_hints(cls)
    fields = []
    for f in dataclasses.fields(cls):
        default: Any = _MISSING
        if f.default is not dataclasses.MISSING:
            default = f.default
        elif f.default_factory is not dataclasses.MISSING:
            default = f.default_factory
        fields.append((f.name, _accepted(hints[f.name]), default))
    _FIELDS[cls] = result = tuple(fields)
    return result


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


_packed = msgpack.Packer().pack
"""One packer for all: it needs no lock, packing is one step for other threads."""


def encode(msg: Any) -> bytes:
    """Bytes of a registered message. Raises UsageError when they exceed MAX_BODY."""
    body: bytes = _packed([msg.TAG, *_values(msg)])
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
    known = _BY_TAG.get(parts[0]) or _looked_up(parts[0])
    if known is None:
        raise UsageError(
            f"the message {parts[0][:40]!r} is not known here.",
            hint="The two sides may be of different versions: run `va down` and `va up`.",
            code="unknown_message",
        )
    made = (_DECODERS.get(known) or _compile_decoder(known))(parts)
    return made if made is not None else _checked(known, parts)


def _looked_up(tag: str) -> type[Any] | None:
    """A message of a part of the vocabulary that this process has not loaded yet."""
    from transports.bus import vocabulary

    vocabulary.load_all()
    return _BY_TAG.get(tag)


_DECODERS: dict[type[Any], Callable[[list[Any]], Any]] = {}


def _compile_decoder(cls: type[Any]) -> Callable[[list[Any]], Any]:
    """The common case at full speed: every field is there and of the plain type. None = look closer."""
    fields = _fields(cls)
    space: dict[str, Any] = {"_new": object.__new__, "_cls": cls, "_count": len(fields) + 1}
    lines = ["def decoder(parts):", " if len(parts) != _count: return None"]
    if fields:
        lines.append(f" _, {', '.join(name for name, _, _ in fields)} = parts")
    tests = []
    for name, accepted, _ in fields:
        space[f"_set_{name}"] = cls.__dict__[name].__set__
        if accepted != (object,):
            space[f"_type_{name}"] = accepted[0]
            tests.append(f"type({name}) is _type_{name}")
    if tests:
        lines.append(f" if not ({' and '.join(tests)}): return None")
    lines += [" made = _new(_cls)", *(f" _set_{name}(made, {name})" for name, _, _ in fields), " return made"]
    exec("\n".join(lines), space)
    decoder: Callable[[list[Any]], Any] = space["decoder"]
    _DECODERS[cls] = decoder
    return decoder


def _checked(cls: type[Any], parts: list[Any]) -> Any:
    """Field by field: defaults for what an older sender left out, what a newer one appended ignored."""
    fields = _fields(cls)
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
    return dict(_BY_TAG)
