"""RFC 6902 JSON patches, with limits: a small patch could otherwise grow an object to gigabytes."""

from __future__ import annotations

from typing import Any

import msgspec

from virt_steward.objects.paths import NothingThere, PathError, Pointer, get, index_of, with_value, without

MOST_OPERATIONS = 500
DEEPEST = 100
"""Levels of nesting: more than any API has, and fewer than decoders support."""
LARGEST = 1024 * 1024
"""Bytes of the object as JSON, after each operation: less than what an API server accepts."""
MOST_WORK = 256 * 1024
"""Bytes that all operations together may bring in or remove, and entries that they may copy: it bounds their time."""

_APPEND = "-"
_LONGEST_QUOTE = 200


# PatchError
# ├── BadPatch     the text is not a JSON patch
# └── PatchFailed  an operation fails on this object, or exceeds a limit
class PatchError(ValueError):
    """A patch that is not applied."""


class BadPatch(PatchError):
    pass


class PatchFailed(PatchError):
    pass


class _Record(msgspec.Struct, frozen=True, tag_field="op"):
    path: str

    def pointers(self) -> tuple[Pointer, ...]:
        """All that it reads or writes."""
        return (Pointer.parse(self.path),)

    def brings(self, obj: Any) -> Any:  # noqa: ARG002 - some bring in what the object has elsewhere
        """The value that the operation adds to the object."""
        return None

    def drops(self, obj: Any) -> int:  # noqa: ARG002 - some only add
        """Return the size of the value that leaves the object."""
        return 0

    def applied(self, obj: Any) -> Any:
        raise NotImplementedError

    def __str__(self) -> str:
        return f"{self.__struct_config__.tag} {_quoted(self.path)}"


class _Given(_Record, frozen=True):
    value: Any

    def brings(self, obj: Any) -> Any:  # noqa: ARG002
        return self.value


class Add(_Given, frozen=True, tag="add"):
    def drops(self, obj: Any) -> int:
        return _replaced_by_add(obj, Pointer.parse(self.path))

    def applied(self, obj: Any) -> Any:
        return _with(obj, Pointer.parse(self.path), self.value)


class Remove(_Record, frozen=True, tag="remove"):
    def drops(self, obj: Any) -> int:
        return _size(get(obj, Pointer.parse(self.path)))

    def applied(self, obj: Any) -> Any:
        return without(obj, _below_root(self.path))


class Replace(_Given, frozen=True, tag="replace"):
    def drops(self, obj: Any) -> int:
        return _size(get(obj, Pointer.parse(self.path)))

    def applied(self, obj: Any) -> Any:
        pointer = Pointer.parse(self.path)
        get(obj, pointer)
        return with_value(obj, pointer, self.value)


class _Carry(_Record, frozen=True):
    source: str = msgspec.field(name="from")

    def pointers(self) -> tuple[Pointer, ...]:
        return Pointer.parse(self.path), Pointer.parse(self.source)

    def brings(self, obj: Any) -> Any:
        return get(obj, Pointer.parse(self.source))

    def __str__(self) -> str:
        return f"{self.__struct_config__.tag} {_quoted(self.source)} to {_quoted(self.path)}"


class Move(_Carry, frozen=True, tag="move"):
    def drops(self, obj: Any) -> int:
        """The value leaves its old place; what it replaces at the new one goes too."""
        return _size(self.brings(obj)) + _replaced_by_add(obj, Pointer.parse(self.path))

    def applied(self, obj: Any) -> Any:
        source, target = _below_root(self.source), Pointer.parse(self.path)
        if target == source:
            get(obj, source)
            return obj
        if target.tokens[: len(source.tokens)] == source.tokens:
            raise PatchFailed("a value cannot be moved into itself")
        return _with(without(obj, source), target, self.brings(obj))


class Copy(_Carry, frozen=True, tag="copy"):
    def drops(self, obj: Any) -> int:
        return _replaced_by_add(obj, Pointer.parse(self.path))

    def applied(self, obj: Any) -> Any:
        return _with(obj, Pointer.parse(self.path), self.brings(obj))


class Test(_Record, frozen=True, tag="test"):
    value: Any

    def applied(self, obj: Any) -> Any:
        if not _equal(get(obj, Pointer.parse(self.path)), self.value):
            raise PatchFailed("the value differs")
        return obj


Operation = Add | Remove | Replace | Move | Copy | Test

_DECODER = msgspec.json.Decoder(list[Operation])


def parse(text: str) -> tuple[Operation, ...]:
    """Read a patch, or raise BadPatch. Whether it fits an object shows when it is applied."""
    try:
        operations = tuple(_DECODER.decode(text))
        _size([getattr(operation, "value", None) for operation in operations])  # refuses what JSON cannot hold
    except RecursionError:
        raise BadPatch(f"it is nested more than {DEEPEST} levels deep") from None
    except (msgspec.MsgspecError, OverflowError, UnicodeError) as error:
        raise BadPatch(_quoted(f"not a JSON patch: {error}")) from None
    if len(operations) > MOST_OPERATIONS:
        raise BadPatch(f"it has {len(operations)} operations; {MOST_OPERATIONS} are allowed")
    for number, operation in enumerate(operations, start=1):
        try:
            if any(len(pointer.tokens) > DEEPEST for pointer in operation.pointers()):
                raise BadPatch(f"operation {number} leads more than {DEEPEST} levels deep")
        except PathError as error:
            raise BadPatch(_named(number, operation, error)) from None
    return operations


def apply(obj: Any, operations: tuple[Operation, ...]) -> Any:
    """Return the patched object, or raise PatchFailed if any operation fails. The original stays as it is.

    The size of the object is not measured after each operation, since that would cost operations times size: 78 KB of
    copies and tests once blocked the process for ten seconds. It is tracked instead: what an operation brings in is
    added, what it removes or replaces is subtracted, and both count as work together with the maps and lists that the
    operation copies on its way. So the time is bounded by MOST_WORK, whatever the patch does.
    """
    size, work = _size(obj), 0
    for number, operation in enumerate(operations, start=1):
        try:
            value = operation.brings(obj)
            brought, dropped = _size(value), operation.drops(obj)
            size += brought - dropped
            work += brought + dropped + sum(_width(obj, pointer) for pointer in operation.pointers())
            _not_too_large(size)
            _not_too_much(work)
            _not_too_deep(value, len(operation.pointers()[0].tokens))
            obj = operation.applied(obj)
        except (PathError, PatchFailed) as error:
            raise PatchFailed(_named(number, operation, error)) from None
    _not_too_large(_size(obj))  # keys and commas were not counted
    return obj


def _size(value: Any) -> int:
    return len(msgspec.json.encode(value))


def _width(obj: Any, pointer: Pointer) -> int:
    """How many entries the maps and lists have that lead to a place: each of them is copied when it changes."""
    entries = 0
    for token in pointer.tokens:
        if not isinstance(obj, dict | list):
            break
        entries += len(obj)
        obj = _entry(obj, token)
    return entries


def _entry(held: dict[str, Any] | list[Any], token: str) -> Any:
    if isinstance(held, dict):
        return held.get(token)
    index = index_of(token)
    return held[index] if index is not None and index < len(held) else None


def _with(obj: Any, pointer: Pointer, value: Any) -> Any:
    """Add as the RFC has it: into a list before the item of that index, into a map in place of what is there."""
    if not pointer.tokens:
        return value
    *parents, token = pointer.tokens
    at = Pointer(tuple(parents))
    match get(obj, at):
        case dict():
            return with_value(obj, pointer, value)
        case list() as items if token in (_APPEND, str(len(items))):
            return with_value(obj, at, [*items, value])
        case list() as items:
            get(obj, pointer)
            return with_value(obj, at, [*items[: int(token)], value, *items[int(token) :]])
    raise NothingThere(pointer, len(parents))


def _below_root(text: str) -> Pointer:
    pointer = Pointer.parse(text)
    if not pointer.tokens:
        raise PatchFailed("the whole object cannot be removed")
    return pointer


def _equal(one: Any, other: Any) -> bool:
    """Compare as the RFC does: 1 equals 1.0, but not `true`."""
    match one, other:
        case dict(), dict():
            return one.keys() == other.keys() and all(_equal(value, other[name]) for name, value in one.items())
        case list(), list():
            return len(one) == len(other) and all(map(_equal, one, other))
    return isinstance(one, bool) is isinstance(other, bool) and bool(one == other)


def _replaced_by_add(obj: Any, pointer: Pointer) -> int:
    """The size of what an add overwrites: a value in a map or the whole object. Into a list it inserts."""
    if not pointer.tokens:
        return _size(obj)
    *parents, token = pointer.tokens
    holder = get(obj, Pointer(tuple(parents)))
    return _size(holder[token]) if isinstance(holder, dict) and token in holder else 0


def _not_too_much(work: int) -> None:
    if work > MOST_WORK:
        raise PatchFailed(f"the operations up to here move more than {MOST_WORK} bytes; use fewer or smaller ones")


def _not_too_deep(value: Any, depth: int) -> None:
    level = [value]
    while level and depth <= DEEPEST:
        level = [held for one in level if isinstance(one, dict | list) for held in _held(one)]
        depth += 1
    if level:
        raise PatchFailed(f"the object would be nested more than {DEEPEST} levels deep")


def _not_too_large(size: int) -> None:
    if size > LARGEST:
        raise PatchFailed(f"the object would be larger than {LARGEST} bytes")


def _held(value: dict[str, Any] | list[Any]) -> Any:
    return value.values() if isinstance(value, dict) else value


def _named(number: int, operation: Operation, error: Exception) -> str:
    return f"operation {number} ({operation}): {_quoted(str(error))}"


def _quoted(text: str) -> str:
    return text if len(text) <= _LONGEST_QUOTE else f"{text[:_LONGEST_QUOTE]}…"
