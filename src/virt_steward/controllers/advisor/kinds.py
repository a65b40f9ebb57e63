"""Wakes the configs whenever the server serves other kinds, or a schema they read has changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from virt_steward.kube.discovery import Discovery
    from virt_steward.objects.identity import Key
    from virt_steward.runtime.schemas import Schemas


class KindsFollower:
    """A companion of the controller."""

    def __init__(
        self,
        discovery: Discovery,
        schemas: Schemas,
        awake: Callable[[], Collection[Key]],
        wake: Callable[[Key], None],
    ) -> None:
        self._discovery = discovery
        self._awake = awake
        self._wake = wake
        schemas.tell(lambda _: self._wake_all())

    async def settled(self) -> None:
        """There is nothing to wait for: whoever leads looks at everything first."""

    async def run(self) -> None:
        while True:
            await self._discovery.changed()
            self._wake_all()

    def _wake_all(self) -> None:
        for key in self._awake():
            self._wake(key)
