"""RFC 6901 JSON pointers: read a value, or return a changed copy of the object."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from virt_steward.objects.quoting import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

_APPEND = "-"
_INDEX = re.compile(r"0|[1-9][0-9]{0,9}")  # bounded: int() refuses thousands of digits
_BAD_ESCAPE = re.compile(r"~(?![01])")


# PathError
# ├── BadPointer    the text is not a pointer
# └── NothingThere  the object has no value at the pointer
class PathError(ValueError):
    """A pointer that cannot be followed."""


class BadPointer(PathError):
    """The text is not a JSON pointer."""

    def __init__(self, text: str, at: int, problem: str) -> None:
        super().__init__(f"{quoted(text)} is no JSON pointer: {problem} at character {at + 1}")
        self.text = text
        self.at = at


class NothingThere(PathError):
    """The object has no value at the pointer."""

    def __init__(self, pointer: Pointer, at: int) -> None:
        parent = str(Pointer(pointer.tokens[:at])) or "the object"
        super().__init__(f"{str(pointer)!r} leads nowhere: {parent} has no {pointer.tokens[at]!r}")
        self.pointer = pointer
        self.at = at


@dataclass(frozen=True, slots=True, order=True)
class Pointer:
    """A path from the root of an object to a value; without tokens, the object itself."""

    tokens: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Pointer:
        if not text:
            return cls()
        if not text.startswith("/"):
            raise BadPointer(text, 0, "it must start with '/'")
        if bad := _BAD_ESCAPE.search(text):
            raise BadPointer(text, bad.start(), "'~' must be followed by 0 or 1")
        tokens = text[1:].split("/")
        return cls(tuple(map(unescape, tokens) if "~" in text else tokens))

    def __str__(self) -> str:
        return "".join(f"/{escape(token)}" for token in self.tokens)

    def __truediv__(self, token: str | int) -> Pointer:
        return Pointer((*self.tokens, str(token)))


def escape(token: str) -> str:
    return token.replace("~", "~0").replace("/", "~1")


def unescape(token: str) -> str:
    return token.replace("~1", "/").replace("~0", "~")  # in this order: `~01` is a tilde and a one


def get(obj: Any, pointer: Pointer) -> Any:
    """Return the value, or raise NothingThere."""
    value = obj
    for at, token in enumerate(pointer.tokens):
        value = value[_place(value, token, pointer, at)]
    return value


def has(obj: Any, pointer: Pointer) -> bool:
    try:
        get(obj, pointer)
    except NothingThere:
        return False
    return True


def with_value(obj: Any, pointer: Pointer, value: Any) -> Any:
    """Return the object with this value at the pointer: missing parents become maps, `-` appends to a list."""
    return _with_value(obj, pointer, 0, value)


def without(obj: Any, pointer: Pointer) -> Any:
    """Return the object without the value at the pointer, or raise NothingThere."""
    if not pointer.tokens:
        raise ValueError("the whole object cannot be removed from itself")
    return _without(obj, pointer, 0)


def leaves(obj: Any, at: Pointer = Pointer()) -> Iterator[tuple[Pointer, Any]]:  # noqa: B008 - frozen, so safe to share
    """All leaf values: scalars, and empty maps and lists."""
    match obj:
        case dict() if obj:
            for name, value in obj.items():
                yield from leaves(value, at / name)
        case list() if obj:
            for index, value in enumerate(obj):
                yield from leaves(value, at / index)
        case _:
            yield at, obj


def index_of(token: str) -> int | None:
    """The index that a token means in a list; None if it means none, or one that no list has."""
    return int(token) if _INDEX.fullmatch(token) else None


def _place(parent: Any, token: str, pointer: Pointer, at: int) -> Any:
    """The key or index of the token in its parent."""
    match parent:
        case dict() if token in parent:
            return token
        case list() if (index := index_of(token)) is not None and index < len(parent):
            return index
    raise NothingThere(pointer, at)


def _with_value(parent: Any, pointer: Pointer, at: int, value: Any) -> Any:
    if at == len(pointer.tokens):
        return value
    token = pointer.tokens[at]
    match parent:
        case dict():
            return {**parent, token: _with_value(parent.get(token, {}), pointer, at + 1, value)}
        case list() if token == _APPEND:
            return [*parent, _with_value({}, pointer, at + 1, value)]
    place = _place(parent, token, pointer, at)
    rest = parent.copy()
    rest[place] = _with_value(parent[place], pointer, at + 1, value)
    return rest


def _without(parent: Any, pointer: Pointer, at: int) -> Any:
    place = _place(parent, pointer.tokens[at], pointer, at)
    rest = parent.copy()
    if at + 1 == len(pointer.tokens):
        del rest[place]
    else:
        rest[place] = _without(parent[place], pointer, at + 1)
    return rest
