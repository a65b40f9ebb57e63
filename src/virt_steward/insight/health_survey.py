"""The state of an installation, read with the rights of one person. A part that they may not read hides no other."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import msgspec

from virt_steward.apis.crds import CRDS
from virt_steward.controllers import NAMES, definition
from virt_steward.insight.deployments import DEPLOYMENT, Deployment
from virt_steward.insight.health import (
    ControllerHealth,
    DeploymentState,
    HealthObservation,
    LeaseState,
    RivalOperator,
    Unread,
    Verdict,
    judge,
    judge_all,
)
from virt_steward.insight.inbox import InboxLine
from virt_steward.insight.inbox_survey import read_inbox_of
from virt_steward.insight.reading import listed_if_served
from virt_steward.insight.status import GO_LEASES, Section, read_section
from virt_steward.kube.client import Selection
from virt_steward.kube.errors import Forbidden, NotFound, one_line
from virt_steward.kube.whoami import server_time
from virt_steward.objects.document import JsonDocument
from virt_steward.objects.identity import Key, Ref
from virt_steward.objects.wallclock import parse_rfc3339
from virt_steward.runtime.access import APP_SELECTOR, LEASE, Access, Reach
from virt_steward.runtime.leader import FAILING, LAST_SUCCESS
from virt_steward.runtime.standby import DEFAULT_DURATION, LONGEST_HOLDER, other_leases
from virt_steward.settings import names_in

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterator

    from virt_steward.controllers.options import ControllerOptions
    from virt_steward.insight.inbox import InboxItem
    from virt_steward.insight.inbox_survey import InboxOptions
    from virt_steward.kube.client import Client
    from virt_steward.runtime.access import Grant

T = TypeVar("T")

ALL = "all"
CRD_OF = {"advisor": "VirtPlatformConfig", "approver": "InstallPlanApprover", "placement": "KubevirtConfig"}
"""The kind of ours that each controller reconciles."""
READS = ("watch", "list", "get")
LONGEST_NUMBER = 10
"""Digits: int() refuses thousands."""
ACCESS_REVIEW = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "metadata": {"name": ""}}


class OwnLeaseMeta(msgspec.Struct, frozen=True):
    annotations: dict[str, str] = {}


class OwnLeaseSpec(msgspec.Struct, frozen=True, rename="camel"):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: datetime | None = None
    renew_time: datetime | None = None


class OwnLease(msgspec.Struct, frozen=True):
    """The Lease of a controller of ours, as far as it is read."""

    metadata: OwnLeaseMeta
    spec: OwnLeaseSpec = OwnLeaseSpec()

    @property
    def state(self) -> LeaseState:
        spec, said = self.spec, self.metadata.annotations
        failing = said.get(FAILING, "")
        return LeaseState(
            one_line((spec.holder_identity or "")[:LONGEST_HOLDER]),
            spec.acquire_time,
            spec.renew_time,
            timedelta(seconds=spec.lease_duration_seconds or DEFAULT_DURATION),
            parse_rfc3339(said.get(LAST_SUCCESS, "")),
            int(failing) if failing.isdecimal() and len(failing) < LONGEST_NUMBER else 0,
        )


class ControllerStatus(JsonDocument, frozen=True):
    """Everything about one controller."""

    health: ControllerHealth
    objects: Section
    waiting: tuple[InboxLine, ...]
    """What waits for a person; the most urgent first."""


class InstallationStatus(JsonDocument, frozen=True):
    """The answer of `virt-steward status`."""

    verdict: Verdict
    at: datetime
    """By the clock of the API server."""
    namespace: str
    controllers: tuple[ControllerStatus, ...]


class StatusOptions(NamedTuple):
    """The settings of the controllers on which the answer depends."""

    controllers: ControllerOptions
    inbox: InboxOptions

    @property
    def namespace(self) -> str:
        return self.inbox.autopilot.namespace


async def read_status(client: Client, options: StatusOptions) -> InstallationStatus:
    """Read everything. Raises the errors of an API server that cannot be asked at all."""
    await client.discovery.refresh()
    now = await server_time(client)
    deployments = await _unless_forbidden(
        client.list(DEPLOYMENT, Selection(options.namespace, labels=APP_SELECTOR), Deployment)
    )
    found = [await _controller(client, name, options, deployments, now) for name in NAMES]
    return InstallationStatus(judge_all([one.health for one in found]), now, options.namespace, tuple(found))


async def _controller(
    client: Client, name: str, options: StatusOptions, deployments: list[Deployment] | Unread, now: datetime
) -> ControllerStatus:
    access = definition(name, options.controllers).access
    lease_key = Key(options.namespace, access.lease)
    section = await read_section(client, name, options.inbox.autopilot, now)
    waiting, unknown = await _inbox(client, name, options.inbox, now)
    rival, unread_rival = await _rival(client, name, now)
    mine = deployments if isinstance(deployments, Unread) else [one for one in deployments if _runs(one, name)]
    first = mine[0] if mine and not isinstance(mine, Unread) else None
    seen = HealthObservation(
        controller=name,
        lease_key=lease_key,
        deployments=mine if isinstance(mine, Unread) else tuple(_state(one) for one in mine),
        lease=await _lease(client, lease_key),
        rival=rival,
        missing_crds=tuple(_missing_crds(client, name)),
        lacking=await _lacking(client, access, first) if first else (),
        account=first.account if first else "",
        active=section.active,
        waiting=len(waiting),
        unread=tuple(dict.fromkeys((*section.unread, *unknown, *unread_rival))),
    )
    return ControllerStatus(judge(seen, now), section, tuple(InboxLine.of(item) for item in waiting))


def _runs(deployment: Deployment, controller: str) -> bool:
    named = names_in(deployment.flags.get("controllers", ALL))
    return controller in named or ALL in named


def _state(deployment: Deployment) -> DeploymentState:
    name = f"{deployment.metadata.namespace}/{deployment.metadata.name}"
    flags = deployment.flags
    elects = "no-leader-elect" not in flags and flags.get("leader-elect") != "false"
    return DeploymentState(name, deployment.spec.replicas, deployment.status.ready_replicas, elects)


async def _inbox(
    client: Client, name: str, options: InboxOptions, now: datetime
) -> tuple[tuple[InboxItem, ...], tuple[str, ...]]:
    found = await read_inbox_of(client, name, options, now)
    return found.items, tuple(f"what waits: {one}" for one in found.unknown)


async def _lease(client: Client, key: Key) -> LeaseState | Unread | None:
    try:
        found = await _unless_forbidden(client.get(Ref(LEASE, key), OwnLease))
    except NotFound:
        return None
    return found if isinstance(found, Unread) else found.state


async def _rival(client: Client, name: str, now: datetime) -> tuple[RivalOperator | None, tuple[str, ...]]:
    if name not in GO_LEASES:
        return None, ()
    leases = await listed_if_served(client, other_leases(GO_LEASES[name]))
    if leases.denied:
        return None, (f"whether a Go operator runs: forbidden (403) to list Leases named {GO_LEASES[name]}",)
    held = sorted(
        (one.metadata.key, one.holder) for one in leases if one.is_renewed(now, timedelta(seconds=one.duration))
    )
    return (RivalOperator(*held[0]) if held else None), ()


def _missing_crds(client: Client, name: str) -> Iterator[str]:
    for crd in CRDS:
        kind = crd.kind
        if kind.name == CRD_OF.get(name) and not client.discovery.serves(kind.group, kind.plural):
            yield f"{kind.plural}.{kind.group}"


async def _lacking(client: Client, access: Access, deployment: Deployment) -> tuple[str, ...] | Unread:
    """What the account of the pods is forbidden to read, and to do with its Lease; asked of the API server."""
    user = f"system:serviceaccount:{deployment.metadata.namespace}:{deployment.account}"
    watched = tuple((deployment.flags.get("watch-namespaces", "")).split(","))
    rights = [
        (verb, grant, namespace, name)
        for grant in access.all_grants
        for verb in _verbs(grant)
        for namespace in _namespaces(grant, deployment.metadata.namespace, watched)
        for name in grant.names or ("",)
    ]
    first = await _unless_forbidden(_may(client, user, *rights[0]))  # alone: it says whether this person may ask
    if isinstance(first, Unread):
        return first
    answers = [first, *await asyncio.gather(*(_may(client, user, *right) for right in rights[1:]))]
    return tuple(
        dict.fromkeys(
            _right(verb, grant, namespace, name)
            for (verb, grant, namespace, name), allowed in zip(rights, answers, strict=True)
            if not allowed
        )
    )


def _verbs(grant: Grant) -> tuple[str, ...]:
    """The verbs that count: one by which it reads, and all on its own Lease."""
    if grant.kind == LEASE and grant.where is Reach.OWN:
        return grant.verbs
    return next(((verb,) for verb in READS if verb in grant.verbs), ())


def _namespaces(grant: Grant, own: str, watched: tuple[str, ...]) -> tuple[str, ...]:
    match grant.where:
        case Reach.CLUSTER:
            return ("",)
        case Reach.TARGETS:
            return watched
        case Reach.OWN:
            return (own,)
        case Reach.SECRETS:  # each KubevirtConfig reports whether its Secret can be read
            return ()
        case namespace:
            return (namespace,)


async def _may(client: Client, user: str, verb: str, grant: Grant, namespace: str, name: str) -> bool:  # noqa: PLR0913, PLR0917 - the fields of a review
    attributes = {
        "verb": verb,
        "group": grant.kind.group,
        "resource": grant.kind.plural,
        "subresource": grant.subresource,
        "namespace": namespace,
        "name": name,
    }
    answer = await client.create({**ACCESS_REVIEW, "spec": {"user": user, "resourceAttributes": attributes}})
    return bool(answer["status"]["allowed"])


def _right(verb: str, grant: Grant, namespace: str, name: str) -> str:
    resource = f"{grant.resource}.{grant.kind.group}" if grant.kind.group else grant.resource
    return f"{verb} {resource}" + (f" {name}" if name else "") + (f" in {namespace}" if namespace else "")


async def _unless_forbidden(reading: Awaitable[T]) -> T | Unread:
    try:
        return await reading
    except Forbidden as error:
        return Unread(one_line(str(error)))
