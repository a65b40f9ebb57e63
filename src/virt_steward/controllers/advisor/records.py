"""The advisor's own records of plans and their progress: one ConfigMap per profile, in the controller's namespace.

Each is read once by a process, and then only written: nobody else has the right to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from virt_steward.controllers.advisor.integrity import PlanRecord
from virt_steward.kube import faults
from virt_steward.kube.errors import Conflict
from virt_steward.objects.corekinds import CONFIG_MAP
from virt_steward.objects.identity import Key, Ref
from virt_steward.ssa.locks import lock_on, locked
from virt_steward.ssa.managers import PLAN_RECORD
from virt_steward.ssa.preview import fetch

if TYPE_CHECKING:
    from virt_steward.kube.client import Client, Object

_ENTRY = "record"


def name_of_record(profile: str) -> str:
    return f"virt-steward-plan-{profile}"


class PlanRecords:
    """Reads and saves records. A failed save forgets what was read, so that it is read again."""

    def __init__(self, client: Client, namespace: str) -> None:
        self._client = client
        self._namespace = namespace
        self._read: dict[str, Object | None] = {}
        self._known: dict[str, PlanRecord | None] = {}

    async def load(self, profile: str) -> PlanRecord | None:
        if profile not in self._known:
            ref = Ref(CONFIG_MAP, Key(self._namespace, name_of_record(profile)))
            self._keep(profile, await fetch(self._client, ref))
        return self._known[profile]

    async def save(self, profile: str, record: PlanRecord) -> None:
        """Replace the record of a profile. Raises Conflict if another process has replaced it."""
        intent = {
            "apiVersion": "v1",
            "kind": CONFIG_MAP.name,
            "metadata": {"name": name_of_record(profile), "namespace": self._namespace},
            "data": {_ENTRY: msgspec.json.encode(record).decode()},
        }
        faults.reach("advisor.record.before")
        try:
            applied = await self._client.apply(
                locked(intent, lock_on(self._read[profile])), manager=PLAN_RECORD.name, force=True
            )
        except Conflict:
            self._known.pop(profile)
            raise
        faults.reach("advisor.record.after")
        self._keep(profile, applied.object)

    def _keep(self, profile: str, live: Object | None) -> None:
        self._read[profile] = live
        self._known[profile] = _decoded(live) if live else None


def _decoded(live: Object) -> PlanRecord | None:
    """A record that this version cannot read, as after a downgrade, is none: its plan is drafted again."""
    try:
        return msgspec.json.decode(live["data"][_ENTRY], type=PlanRecord)
    except (KeyError, TypeError, msgspec.MsgspecError):
        return None
