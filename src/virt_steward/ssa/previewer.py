"""Previews that make no request while nothing has changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from virt_steward.objects.identity import ref_of
from virt_steward.ssa.memo import Memo, Sighting
from virt_steward.ssa.preview import Preview, Unchanged, fetch, preview

if TYPE_CHECKING:
    from collections.abc import Callable

    from virt_steward.kube.client import Client
    from virt_steward.ssa.locks import Object
    from virt_steward.ssa.managers import Manager


@dataclass(frozen=True, slots=True)
class Settled:
    """Found converged before, and nothing has changed since: nobody was asked."""


class Previewer:
    """Asks the memo first, then the server."""

    def __init__(self, client: Client, memo: Memo, now: Callable[[], float]) -> None:
        self._client = client
        self._memo = memo
        self._now = now

    async def preview(self, intent: Object, manager: Manager, sighting: Sighting | None) -> Preview | Settled:
        """Preview against the object that an informer has sighted; None if it has none of this name."""
        if sighting and self._memo.knows(intent, manager, sighting, self._now()):
            return Settled()
        live = await fetch(self._client, ref_of(intent)) if sighting else None
        outcome = await preview(self._client, intent, manager, live)
        if isinstance(outcome, Unchanged):
            self._memo.remember(intent, manager, Sighting.of(outcome.live), self._now())
        return outcome
