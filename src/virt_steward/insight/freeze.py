"""Whether the installation is frozen, as a person may read it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from virt_steward.holds.installation import FreezeView, freezes_in
from virt_steward.insight.reading import listed_if_served

if TYPE_CHECKING:
    from datetime import datetime

    from virt_steward.holds.freezes import FreezeState
    from virt_steward.kube.client import Reader


async def read_freeze(reader: Reader, namespace: str, controller: str) -> FreezeView:
    """Read the freeze for a controller. One that this person may not read says nothing about the controller."""
    store = await listed_if_served(reader, freezes_in(namespace))
    store.denied.clear()
    return FreezeView(store, namespace, controller)


async def freeze_now(reader: Reader, namespace: str, controller: str, now: datetime) -> FreezeState:
    """Whether the controller begins nothing now, as far as this person may know."""
    return (await read_freeze(reader, namespace, controller)).state(now)
