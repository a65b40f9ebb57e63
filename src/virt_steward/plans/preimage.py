"""What targets looked like before a plan changed them: one record per executed plan, which is never overwritten.

Kept as a ControllerRevision, whose data the API server does not let anybody change, in the controller's namespace. So
it survives the deletion of the config.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from virt_steward.apis.virtplatformconfig import TargetRef
from virt_steward.kube.client import Selection
from virt_steward.kube.errors import AlreadyExists, NotFound
from virt_steward.objects.canonical import same
from virt_steward.objects.identity import Key, Kind, Ref
from virt_steward.plans.annotations import GOVERNED_BY
from virt_steward.plans.fields import values
from virt_steward.plans.fingerprint import record_name
from virt_steward.plans.intent import ref_to

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from virt_steward.apis.virtplatformconfig import PlanItem
    from virt_steward.kube.client import Client, Reader
    from virt_steward.plans.intent import Object
    from virt_steward.plans.owner import PlanOwner

CONTROLLER_REVISION = Kind("apps", "ControllerRevision", "controllerrevisions")
PROFILE = "advisor.kubevirt.io/profile"
"""Label on a ControllerRevision: the profile whose plan it is a record of."""


class TargetPreImage(msgspec.Struct, frozen=True, rename="camel"):
    """One target."""

    name: str
    """The item's."""
    target: TargetRef
    existed: bool
    fields: tuple[str, ...]
    before: dict[str, Any]
    """What the fields held; one that was not set is missing."""
    applied: dict[str, Any]
    """What the plan was to put there."""
    labels: dict[str, str] = {}
    """By which pools select a MachineConfig."""
    replaced: dict[str, Any] = {}
    """What others had set between two of our plans, and the second one replaced. A rollback does not restore it."""

    @property
    def ref(self) -> Ref:
        return ref_to(self.target)

    def is_as_applied(self, live: Object, field: str) -> bool:
        return same(values(live, (field,)), _part(self.applied, field))

    def is_as_before(self, live: Object, field: str) -> bool:
        return same(values(live, (field,)), _part(self.before, field))


class PreImage(msgspec.Struct, frozen=True):
    profile: str
    plan: str
    items: tuple[TargetPreImage, ...]

    @property
    def name(self) -> str:
        return record_name(self.profile, self.plan)


def capture(
    owner: PlanOwner,
    plan_hash: str,
    items: Iterable[PlanItem],
    targets: Mapping[Ref, Object | None],
    earlier: PreImage | None = None,
) -> PreImage:
    """Record the targets of all items that are still to be written.

    A record is always of one moment. While our plans govern a target, that is the moment before the first of them: for
    example, plan 1 changes an interval from 300 to 60, and plan 2 from 60 to 90. The record of plan 2 says 300, so
    that a rollback restores what the admin had. Values of both moments in one record would be a combination that never
    was. Where no plan governs the target any more, since somebody removed the annotation, the moment is now.
    """
    kept = {one.name: one for one in (earlier.items if earlier else ()) if _governs(owner, targets.get(one.ref))}
    for item in items:
        if item.state == "Pending":
            kept[item.name] = _kept(item, targets.get(ref_to(item.target_ref)), kept.get(item.name))
    return PreImage(owner.name, plan_hash, tuple(kept.values()))


async def save(client: Client, owner: PlanOwner, namespace: str, image: PreImage) -> None:
    """Save the record unless it exists: the first one was made before anything was written."""
    record = {
        "apiVersion": "apps/v1",
        "kind": CONTROLLER_REVISION.name,
        "metadata": {"name": image.name, "namespace": namespace, "labels": {PROFILE: image.profile}},
        "revision": 1,
        "data": msgspec.to_builtins(image),
    }
    owner.reach("preimage.before")
    try:
        await client.create(record)
    except AlreadyExists:
        return
    owner.reach("preimage.after")


async def load(reader: Reader, namespace: str, profile: str, name: str) -> PreImage | None:
    """The record of this name; without a name the newest of the profile, as after its config was deleted."""
    if name:
        try:
            image = _read(await reader.get(Ref(CONTROLLER_REVISION, Key(namespace, name))))
        except NotFound:
            return None
        return image if image.profile == profile else None
    found = await reader.list(CONTROLLER_REVISION, Selection(namespace, labels=f"{PROFILE}={profile}"))
    newest = max(found, key=_age, default=None)
    return _read(newest) if newest else None


def _age(record: Object) -> tuple[str, int]:
    """Times have seconds only; two plans may be executed within one."""
    metadata = record["metadata"]
    return metadata["creationTimestamp"], int(metadata["resourceVersion"])


def _read(record: Object) -> PreImage:
    return msgspec.convert(record["data"], PreImage)


def _governs(owner: PlanOwner, live: Object | None) -> bool:
    return live is not None and (live["metadata"].get("annotations") or {}).get(GOVERNED_BY) == owner.name


def _part(of: Mapping[str, Any], field: str) -> dict[str, Any]:
    return {field: of[field]} if field in of else {}


def _kept(item: PlanItem, live: Object | None, earlier: TargetPreImage | None) -> TargetPreImage:
    before = {} if live is None else values(live, item.managed_fields)
    kept = TargetPreImage(
        name=item.name,
        target=item.target_ref,
        existed=live is not None,
        fields=item.managed_fields,
        before=before,
        applied=values(item.desired_state, item.managed_fields),
        labels=item.desired_state["metadata"].get("labels", {}),
    )
    return _joined(earlier, kept, live) if live is not None and earlier and earlier.target == kept.target else kept


def _joined(earlier: TargetPreImage, kept: TargetPreImage, live: Object) -> TargetPreImage:
    """What was there before both plans; fields that only the second one sets are as they are now."""
    fields = tuple(dict.fromkeys((*earlier.fields, *kept.fields)))
    now = values(live, fields)
    new = {field: value for field, value in now.items() if field not in earlier.fields}
    changed = [field for field in earlier.fields if not earlier.is_as_applied(live, field)]
    between = {field: now[field] for field in changed if field in now and not earlier.is_as_before(live, field)}
    return msgspec.structs.replace(
        kept,
        existed=earlier.existed,
        fields=fields,
        before=earlier.before | new,
        applied=now | kept.applied,
        replaced=earlier.replaced | between,
    )
