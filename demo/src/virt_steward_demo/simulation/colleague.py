"""An impatient colleague: somebody who sets a field again and again, and does not ask."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from itertools import cycle
from typing import TYPE_CHECKING, Any

import structlog

from virt_steward.kube.errors import KubeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from virt_steward.kube.client import Client, Object
    from virt_steward.objects.identity import Ref

log = structlog.get_logger()


@dataclass(slots=True)
class Colleague:
    """Sets one field to one value after another, `every` so many seconds, under a field manager of their own."""

    client: Client
    ref: Ref
    path: tuple[str, ...]
    values: Sequence[Any]
    every: float
    manager: str = "impatient-colleague"
    edits: int = field(default=0, init=False)
    """How many they have made."""

    async def run(self) -> None:
        """At once, and then on and on; ends by cancellation."""
        for value in cycle(self.values):
            try:
                await self.client.merge_patch(self.ref, self._patch(value), manager=self.manager)
                self.edits += 1
            except KubeError as error:  # nobody is so easily put off
                log.warning("the colleague was refused", object=str(self.ref), error=str(error))
            await asyncio.sleep(self.every)

    def _patch(self, value: Any) -> Object:
        patch = value
        for name in reversed(self.path):
            patch = {name: patch}
        return dict(patch)
