"""What becomes of each object at the removal: deleted, released or kept, and why. Pure.

Nothing that nodes or other operators depend on is deleted: objects that the autopilot or a plan wrote stay with their
values, and only our ownership of fields, and our own records on them, are removed. So no node reboots.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from virt_steward.apis.kubevirtconfig import KUBEVIRT_CONFIG_CRD
from virt_steward.controllers.autopilot.annotation_keys import CREATED, CREATED_BY
from virt_steward.controllers.placement.observation import BECAUSE_ANNOTATION
from virt_steward.objects.counts import count_of
from virt_steward.plans.annotations import APPLIED_HASH, GOVERNED_BY
from virt_steward.removal.found import HELM, OLM, Part

if TYPE_CHECKING:
    from virt_steward.objects.identity import Ref
    from virt_steward.removal.found import FoundObject, InstallationSeen

RECORDED = frozenset((CREATED, CREATED_BY, GOVERNED_BY, APPLIED_HASH, BECAUSE_ANNOTATION))
"""Annotations by which controllers recorded what they did. All others are decisions of people, or values in use."""
VITISTACK = f"{KUBEVIRT_CONFIG_CRD.kind.plural}.{KUBEVIRT_CONFIG_CRD.kind.group}"


class RemovalAction(StrEnum):
    """What is done with an object."""

    DELETE = "delete"
    RELEASE = "release"
    KEEP = "keep"


@dataclass(frozen=True, slots=True)
class RemovalStep:
    """What is done with one object."""

    action: RemovalAction
    ref: Ref
    uid: str
    part: Part
    removes: tuple[str, ...] = ()
    """What is removed from an object that stays."""
    keeps: tuple[str, ...] = ()
    """What of ours stays on it."""
    reason: str = ""


def decide_removal(seen: InstallationSeen, *, delete_crds: bool = False) -> tuple[RemovalStep, ...]:
    """Decide on all objects; the steps are in the order in which they can be taken."""
    order = list(Part)
    steps = (_decide(one, delete_crds=delete_crds) for one in seen.objects)
    return tuple(sorted(steps, key=lambda step: (order.index(step.part), step.ref)))


def refusal(seen: InstallationSeen) -> str:
    """Why nothing may be removed now; empty if it may."""
    if not seen.running:
        return ""
    return (
        f"controllers run: {'; '.join(seen.running)}. They would write again what is removed. Stop them first: with "
        f"Helm `helm uninstall`, with OLM delete the Subscription and the ClusterServiceVersion, else `kubectl -n "
        f"{seen.namespace} scale deployment -l app.kubernetes.io/name=virt-steward --replicas=0`; then try again"
    )


def _decide(one: FoundObject, *, delete_crds: bool) -> RemovalStep:
    if one.part is Part.TARGET:
        return _release(one)
    if reason := _kept(one, delete_crds=delete_crds):
        return RemovalStep(RemovalAction.KEEP, one.ref, one.uid, one.part, reason=reason)
    reason = f"and with it {count_of(one.count, 'object')}" if one.part is Part.CRD else ""
    return RemovalStep(RemovalAction.DELETE, one.ref, one.uid, one.part, reason=reason)


def _kept(one: FoundObject, *, delete_crds: bool) -> str:
    """Why an object of our own stays; empty if it is deleted."""
    match one.part:
        case Part.CRD if one.ref.key.name == VITISTACK:
            reason = "the kind belongs to vitistack, whose operators may use it"
        case Part.CRD:  # Helm and OLM keep them too
            reason = "" if delete_crds else f"with {count_of(one.count, 'object')}: --delete-crds deletes it and them"
        case _ if one.labels.get(HELM) == "Helm":
            reason = "it is of a Helm release: helm uninstall deletes it"
        case _ if OLM in one.labels:
            reason = f"OLM installed it with {one.labels[OLM]}, and deletes it with that"
        case Part.NAMESPACE:
            reason = f"it may contain Secrets and policies of yours: kubectl delete namespace {one.ref.key.name}"
        case Part.FREEZE:
            reason = "people have set it, and it would count again after another installation"
        case _:
            reason = ""
    return reason


def _release(one: FoundObject) -> RemovalStep:
    removed = tuple(name for name in one.annotations if name in RECORDED)
    left = tuple(name for name in one.annotations if name not in RECORDED)
    keeps = (*(f"annotation {name}" for name in left), *(f"label {name}" for name in sorted(one.labels)))
    if not removed and not one.managers:
        return RemovalStep(RemovalAction.KEEP, one.ref, one.uid, one.part, keeps=keeps, reason="it is of others")
    removes = (*(f"field manager {name}" for name in one.managers), *(f"annotation {name}" for name in removed))
    return RemovalStep(RemovalAction.RELEASE, one.ref, one.uid, one.part, removes, keeps, "its values stay")
