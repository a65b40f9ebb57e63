"""The cache of an informer: objects by key, and by index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from virt_steward.kube.watch import Projected

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, KeysView, Mapping, ValuesView

    from virt_steward.objects.identity import Key

T = TypeVar("T", bound=Projected)


class Store(Generic[T]):
    """Objects by key. Reading it costs no request, and may lag the cluster by a moment."""

    def __init__(self, indexes: Mapping[str, Callable[[T], Iterable[str]]]) -> None:
        self.denied: set[str] = set()
        """Namespaces that are forbidden now: their objects may be outdated or missing."""
        self.version_of: dict[str, Callable[[], int]] = {}
        """The resourceVersion that each watch has reached, by namespace; zero if it has not listed all objects yet."""
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

    def values(self) -> ValuesView[T]:
        return self._objects.values()

    def by(self, index: str, value: str) -> list[T]:
        """The objects with this value in the index, ordered by key."""
        return [self._objects[key] for key in sorted(self._buckets[index].get(value, ()))]

    def unreadable(self, key: Key) -> str | None:
        """Why an existing object could not be decoded; None if it could. Unreadable is not absent."""
        return self._unreadable.get(key)

    def unreadables(self) -> Iterable[Key]:
        """The keys of existing objects that could not be decoded."""
        return self._unreadable.keys()

    def put(self, obj: T) -> T | None:
        """Add an object; return the one that it replaces."""
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
            self._remove_from_indexes(key, before)
        return before

    def known(self) -> set[Key]:
        """All keys, also of unreadable objects."""
        return set(self._objects) | set(self._unreadable)

    def _remove_from_indexes(self, key: Key, obj: T) -> None:
        for name, values_of in self._indexes.items():
            buckets = self._buckets[name]
            for value in values_of(obj):
                keys = buckets.get(value, set())
                keys.discard(key)
                if not keys:
                    buckets.pop(value, None)
