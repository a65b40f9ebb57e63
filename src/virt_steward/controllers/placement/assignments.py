"""How many machines each cluster has: those that the watch shows, and those that were placed a moment ago."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from virt_steward.controllers.placement.observation import Machine
    from virt_steward.objects.identity import Key


class Assignments:
    """A choice counts from the moment in which it is made: the next one must not wait for the watch to tell."""

    def __init__(self) -> None:
        self._clusters: dict[Key, str] = {}
        self._counts: Counter[str] = Counter()
        self._assumed: dict[Key, str] = {}
        """Machines whose choice the watch has not shown yet, and as which version they were seen."""

    def take(self, key: Key, _before: Machine | None, after: Machine | None) -> None:
        """See what the watch shows; it is right, whatever was assumed: a choice is written on just one version."""
        if after and self.awaits(after):
            return  # that very version once more
        self._assumed.pop(key, None)
        self._file(key, after.wishes.config if after and after.is_ours else "")

    @contextmanager
    def assuming(self, machine: Machine, cluster: str) -> Iterator[None]:
        """The choice counts while it is written, and from then on unless that fails."""
        self.assume(machine, cluster)
        try:
            yield
        except BaseException:
            self.release(machine.metadata.key)
            raise

    def assume(self, machine: Machine, cluster: str) -> None:
        """The choice counts, though the watch does not show it yet."""
        self._assumed[machine.metadata.key] = machine.metadata.resource_version
        self._file(machine.metadata.key, cluster)

    def release(self, machine: Key) -> None:
        """The choice was not written after all."""
        if self._assumed.pop(machine, None) is not None:
            self._file(machine, "")

    def awaits(self, machine: Machine) -> bool:
        """Whether the choice for just this version of the machine was written, and has not come back yet."""
        return self._assumed.get(machine.metadata.key) == machine.metadata.resource_version

    def machines_on(self, cluster: str) -> int:
        return self._counts[cluster]

    def _file(self, machine: Key, cluster: str) -> None:
        before = self._clusters.pop(machine, "")
        if before:
            self._counts[before] -= 1
        if cluster:
            self._clusters[machine] = cluster
            self._counts[cluster] += 1
