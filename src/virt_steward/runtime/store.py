"""What an informer knows: objects by key, found also by index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from virt_steward.kube.watch import Projected

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, KeysView, Mapping

    from virt_steward.objects.identity import Key

T = TypeVar("T", bound=Projected)


class Store(Generic[T]):
    """Objects by key. Reading costs no request; what is read was true a moment ago."""

    def __init__(self, indexes: Mapping[str, Callable[[T], Iterable[str]]]) -> None:
        self.denied: set[str] = set()
        """Namespaces that may not be read now: what is known of them may be out of date, or missing."""
        self._objects: dict[Key, T] = {}
        self._unreadable: dict[Key, str] = {}
        self._indexes = dict(indexes)
        self._buckets: dict[str, dict[str, set[Key]]] = {name: {} for name in indexes}

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[T]:
        return iter(self._objects.values())

    def get(self, key: Key) -> T | None:
        return self._objects.get(key)

    def keys(self) -> KeysView[Key]:
        return self._objects.keys()

    def by(self, index: str, value: str) -> list[T]:
        """The objects that the index files under a value, in the order of their keys."""
        return [self._objects[key] for key in sorted(self._buckets[index].get(value, ()))]

    def unreadable(self, key: Key) -> str | None:
        """Why an object that exists could not be decoded: it must not pass for absent."""
        return self._unreadable.get(key)

    def unreadables(self) -> Iterable[Key]:
        """All objects that exist and could not be decoded."""
        return self._unreadable.keys()

    def put(self, obj: T) -> T | None:
        """Keep an object; gives what it replaces."""
        key = obj.metadata.key
        before = self.remove(key)
        self._objects[key] = obj
        for name, values_of in self._indexes.items():
            for value in values_of(obj):
                self._buckets[name].setdefault(value, set()).add(key)
        return before

    def put_unreadable(self, key: Key, why: str) -> T | None:
        before = self.remove(key)
        self._unreadable[key] = why
        return before

    def remove(self, key: Key) -> T | None:
        self._unreadable.pop(key, None)
        before = self._objects.pop(key, None)
        if before is not None:
            self._unfile(key, before)
        return before

    def known(self) -> set[Key]:
        """All keys, also of what cannot be read."""
        return set(self._objects) | set(self._unreadable)

    def _unfile(self, key: Key, obj: T) -> None:
        for name, values_of in self._indexes.items():
            buckets = self._buckets[name]
            for value in values_of(obj):
                keys = buckets.get(value, set())
                keys.discard(key)
                if not keys:
                    buckets.pop(value, None)
