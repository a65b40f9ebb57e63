"""The Go operators themselves: their Leases, the Deployments that hold them, and settings that mean something else."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from virt_steward.controllers.advisor.definition import GO_LEASE as ADVISOR_LEASE
from virt_steward.controllers.approver.definition import GO_LEASE as APPROVER_LEASE
from virt_steward.controllers.autopilot.access import GO_LEASE as AUTOPILOT_LEASE
from virt_steward.insight.deployments import DEPLOYMENT, Deployment
from virt_steward.insight.reading import listed
from virt_steward.insight.switchover.findings import Effect, SwitchFinding, unknown
from virt_steward.kube.errors import Forbidden, NotFound
from virt_steward.objects.identity import Key, Ref
from virt_steward.runtime.standby import other_leases

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from virt_steward.kube.client import Reader
    from virt_steward.runtime.standby import OtherLease

METRICS, PROBES = "metrics-bind-address", "health-probe-bind-address"
OUR_PORTS = {METRICS: ":8080", PROBES: ":8082"}
OFF = "0"

# The holder of a Lease is called after its pod, which is called after its Deployment: name-6d5f8c9b7-x2x4z_uid.
_POD = re.compile(r"(.+)-[a-z0-9]{5,10}-[a-z0-9]{5}_.+")


@dataclass(frozen=True, slots=True)
class GoOperator:
    """An operator that does the work of one of our controllers."""

    controller: str
    name: str
    lease: str
    ports: Mapping[str, str]
    """The addresses that it serves on without flags."""


OPERATORS = (
    GoOperator("advisor", "virt-advisor-operator", ADVISOR_LEASE, {METRICS: OFF, PROBES: ":8081"}),
    GoOperator("autopilot", "virt-platform-autopilot", AUTOPILOT_LEASE, {PROBES: ":8082"}),
    GoOperator("approver", "installplan-approver-operator", APPROVER_LEASE, {METRICS: OFF, PROBES: ":8081"}),
    GoOperator("placement", "vitistack's kubevirt-operator", "09393f52.vitistack.io", {PROBES: ":9992"}),
)


@dataclass(frozen=True, slots=True)
class LeaseSeen:
    key: Key
    holder: str
    is_renewed: bool

    def __str__(self) -> str:
        return f"Lease {self.key}" + (f", renewed by {self.holder}" if self.is_renewed else ", not renewed any more")


@dataclass(frozen=True, slots=True)
class DeploymentSeen:
    key: Key
    flags: Mapping[str, str]
    """By name; a flag without a value has an empty one."""


@dataclass(frozen=True, slots=True)
class OperatorSeen:
    operator: GoOperator
    leases: tuple[LeaseSeen, ...] = ()
    deployments: tuple[DeploymentSeen, ...] = ()
    problem: str = ""
    """Why its Leases could not be read."""

    @property
    def runs(self) -> bool:
        return any(lease.is_renewed for lease in self.leases)


async def observe_operator(reader: Reader, operator: GoOperator, now: datetime) -> OperatorSeen:
    """Find its Leases in all namespaces, and the Deployments of their holders as far as they can be read."""
    source = other_leases(operator.lease)
    try:
        leases = [_lease(one, now) for one in await listed(reader, source, source.selection)]
    except Forbidden as error:
        return OperatorSeen(operator, problem=str(error))
    found = [await _deployment(reader, lease) for lease in leases]
    return OperatorSeen(operator, tuple(leases), tuple(one for one in found if one))


def _lease(lease: OtherLease, now: datetime) -> LeaseSeen:
    return LeaseSeen(lease.metadata.key, lease.holder, lease.is_renewed(now, timedelta(seconds=lease.duration)))


async def _deployment(reader: Reader, lease: LeaseSeen) -> DeploymentSeen | None:
    """None: the holder is no pod of a Deployment, or it cannot be read, which is no reason not to answer."""
    pod = _POD.fullmatch(lease.holder)
    if not pod:
        return None
    key = Key(lease.key.namespace, pod[1])
    try:
        found = await reader.get(Ref(DEPLOYMENT, key), Deployment)
    except (Forbidden, NotFound):
        return None
    return DeploymentSeen(key, found.flags)


def operator_findings(seen: OperatorSeen) -> Iterator[SwitchFinding]:
    operator = seen.operator
    if seen.problem:
        yield unknown(f"Lease {operator.lease}", seen.problem)
    for lease in seen.leases:
        if lease.is_renewed and operator.controller != "placement":
            message = f"{operator.name} runs now. virt-steward stands by and writes nothing until you stop it"
            yield SwitchFinding(Effect.NOTE, f"Lease {lease.key}", message)
    for deployment in seen.deployments:
        yield from _flag_findings(operator, deployment)


def _flag_findings(operator: GoOperator, deployment: DeploymentSeen) -> Iterator[SwitchFinding]:
    where = f"Deployment {deployment.key}"
    if operator.controller == "autopilot" and (namespace := deployment.flags.get("namespace")):
        message = (
            f"--namespace {namespace} is where it finds the HyperConverged. For virt-steward, write "
            f"--hyperconverged {namespace}/kubevirt-hyperconverged: its --namespace is that of the controllers"
        )
        yield SwitchFinding(Effect.NOTE, where, message)
    for flag, ours in OUR_PORTS.items():
        theirs = deployment.flags.get(flag) or operator.ports.get(flag, "")
        if theirs and theirs != ours:
            yield SwitchFinding(Effect.NOTE, where, _port(flag, theirs, ours))


def _port(flag: str, theirs: str, ours: str) -> str:
    if flag == PROBES:
        return f"probes are on {theirs}, virt-steward's are on {ours}: adapt the probes of a Deployment of your own"
    if theirs == OFF:
        return f"it serves no metrics, virt-steward does; --{flag} 0 turns them off"
    return (
        f"metrics are on {theirs}; the manifests of virt-steward serve them on :8443 over TLS to clients with a token, "
        f"and run without options on {ours} by plain HTTP: adapt what scrapes them"
    )
