"""The number of Machines on each cluster: those that the watch shows, and those that were placed a moment ago."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from virt_steward.controllers.placement.observation import Machine
    from virt_steward.objects.identity import Key


class Assignments:
    """Counts a choice as soon as it is made, so that the next choice need not wait for the watch."""

    def __init__(self) -> None:
        self._clusters: dict[Key, str] = {}
        self._totals: Counter[str] = Counter()
        self._assumed: dict[Key, str] = {}
        """Machines whose choice the watch does not show yet, with the resourceVersion that was observed."""

    def take(self, key: Key, _before: Machine | None, after: Machine | None) -> None:
        """Take what the watch shows; it replaces what was assumed, since a choice is written on one version only."""
        if after and self.awaits(after):
            return  # the same version again
        self._assumed.pop(key, None)
        self._set(key, after.request.config if after and after.is_ours else "")

    @contextmanager
    def assuming(self, machine: Machine, cluster: str) -> Iterator[None]:
        """Count the choice while it is written, and from then on unless the write fails."""
        self.assume(machine, cluster)
        try:
            yield
        except BaseException:
            self.release(machine.metadata.key)
            raise

    def assume(self, machine: Machine, cluster: str) -> None:
        """Count the choice, though the watch does not show it yet."""
        self._assumed[machine.metadata.key] = machine.metadata.resource_version
        self._set(machine.metadata.key, cluster)

    def release(self, machine: Key) -> None:
        """The choice was not written."""
        if self._assumed.pop(machine, None) is not None:
            self._set(machine, "")

    def awaits(self, machine: Machine) -> bool:
        """Whether a choice was written on this version of the Machine, and the watch does not show it yet."""
        return self._assumed.get(machine.metadata.key) == machine.metadata.resource_version

    def machines_on(self, cluster: str) -> int:
        return self._totals[cluster]

    def _set(self, machine: Key, cluster: str) -> None:
        before = self._clusters.pop(machine, "")
        if before:
            self._totals[before] -= 1
        if cluster:
            self._clusters[machine] = cluster
            self._totals[cluster] += 1
