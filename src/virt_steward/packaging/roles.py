"""Roles of people: who may do what, as one table, and the ClusterRoles that follow from it.

A role has what those before it have, and more. RBAC says which objects a person may write; what they may change on
them is checked by the admission policies of the controllers, by the verbs that are granted here. `docs/generate.py`
writes the table for people (docs/reference/roles.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from virt_steward.apis.crds import CRDS
from virt_steward.apis.installplanapprover import INSTALL_PLAN_APPROVER
from virt_steward.apis.kubevirtconfig import KUBEVIRT_CONFIG
from virt_steward.apis.virtplatformconfig import VIRT_PLATFORM_CONFIG
from virt_steward.controllers.advisor.admission import RELAX_APPROVALS_VERB
from virt_steward.controllers.approver.olm import CLUSTER_SERVICE_VERSION, INSTALL_PLAN, SUBSCRIPTION
from virt_steward.controllers.autopilot.rollouts.staged import NAME as STAGING
from virt_steward.controllers.placement.observation import MACHINE
from virt_steward.holds.freezes import CONFIG_MAP_NAME as FREEZE
from virt_steward.kube.events import EVENT
from virt_steward.objects.corekinds import CONFIG_MAP, NODE
from virt_steward.platform.hco import HYPERCONVERGED
from virt_steward.platform.machineconfigs import MACHINE_CONFIG_POOL
from virt_steward.runtime.access import DESCRIPTION, RBAC, component_labels
from virt_steward.runtime.admission import APPROVE_VERB, OVERRIDE_FREEZE_VERB

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from virt_steward.objects.identity import Kind
    from virt_steward.runtime.access import Installation

READ = ("get", "list", "watch")
WRITE = ("create", "update", "patch", "delete")


class UserRole(StrEnum):
    """The roles of people, from the least to the most."""

    VIEWER = "viewer"
    REQUESTER = "requester"
    APPROVER = "approver"
    ADMINISTRATOR = "administrator"

    @property
    def included(self) -> tuple[UserRole, ...]:
        """The role itself and those before it."""
        return tuple(UserRole)[: tuple(UserRole).index(self) + 1]


DEFAULT_ROLES = {"view": UserRole.VIEWER, "edit": UserRole.REQUESTER, "admin": UserRole.APPROVER}
"""The roles of Kubernetes that get what a role of ours grants on our own kinds.

What it grants on kinds of other projects is left to their owners. Our kinds are cluster-scoped but for
InstallPlanApprovers, so a RoleBinding in a namespace grants nothing that counts beyond it.
"""
OWN_KINDS = frozenset(crd.kind for crd in CRDS)


@dataclass(frozen=True, slots=True)
class UserGrant:
    """Verbs on one resource, for people. Controllers have `runtime.access.Grant`, which is narrower."""

    kind: Kind
    verbs: tuple[str, ...]
    names: tuple[str, ...] = ()
    """Only these objects (resourceNames)."""

    @property
    def rule(self) -> dict[str, Any]:
        names = {"resourceNames": list(self.names)} if self.names else {}
        return {"apiGroups": [self.kind.group], "resources": [self.kind.plural], **names, "verbs": list(self.verbs)}

    def __str__(self) -> str:
        resource = f"{self.kind.plural}.{self.kind.group}" if self.kind.group else self.kind.plural
        return f"{', '.join(self.verbs)} on {resource}" + (f" {', '.join(self.names)}" if self.names else "")


@dataclass(frozen=True, slots=True)
class Ability:
    """Something that people do, the least role that may do it, and the rights that it needs."""

    what: str
    role: UserRole | None
    """None: no role of ours grants it."""
    grants: tuple[UserGrant, ...] = ()
    needs: str = ""
    """What it needs, where no role grants it."""


ABILITIES: tuple[Ability, ...] = (
    Ability(
        "See profiles, plans, approvers and clusters",
        UserRole.VIEWER,
        tuple(UserGrant(kind, READ) for kind in (VIRT_PLATFORM_CONFIG, INSTALL_PLAN_APPROVER, KUBEVIRT_CONFIG)),
    ),
    Ability(
        "See what they are about: InstallPlans, Machines, the HyperConverged, nodes, events, a freeze",
        UserRole.VIEWER,
        (
            *(UserGrant(kind, READ) for kind in (INSTALL_PLAN, SUBSCRIPTION, CLUSTER_SERVICE_VERSION)),
            *(UserGrant(kind, READ) for kind in (MACHINE, HYPERCONVERGED, MACHINE_CONFIG_POOL, NODE, EVENT)),
            UserGrant(CONFIG_MAP, READ, (FREEZE,)),
        ),
    ),
    Ability(
        "Ask for a plan, change its options, cancel it, stop managing a profile (action DryRun or Ignore)",
        UserRole.REQUESTER,
        (UserGrant(VIRT_PLATFORM_CONFIG, ("create", "patch")),),
    ),
    Ability(
        "Approve or reject a plan, ask for a rollback (action Apply or Rollback, and any change under these)",
        UserRole.APPROVER,
        (UserGrant(VIRT_PLATFORM_CONFIG, (APPROVE_VERB,)),),
    ),
    Ability("Approve an InstallPlan", UserRole.APPROVER, (UserGrant(INSTALL_PLAN, ("patch", APPROVE_VERB)),)),
    Ability(
        "Release a staged change of the autopilot",
        UserRole.APPROVER,
        (UserGrant(HYPERCONVERGED, ("patch", APPROVE_VERB)), UserGrant(CONFIG_MAP, ("get",), (STAGING,))),
    ),
    Ability(
        "Choose the cluster of a Machine that has none",
        UserRole.APPROVER,
        (UserGrant(MACHINE, ("patch", APPROVE_VERB)),),
    ),
    Ability(
        "Override a freeze",
        UserRole.ADMINISTRATOR,
        tuple(
            UserGrant(kind, (OVERRIDE_FREEZE_VERB,)) for kind in (VIRT_PLATFORM_CONFIG, INSTALL_PLAN, HYPERCONVERGED)
        ),
    ),
    Ability(
        "Lower the number of people who must approve a plan (spec.approvals)",
        UserRole.ADMINISTRATOR,
        (UserGrant(VIRT_PLATFORM_CONFIG, (RELAX_APPROVALS_VERB,)),),
    ),
    Ability(
        f"Begin, change and end a freeze of the installation (ConfigMap {FREEZE})",
        UserRole.ADMINISTRATOR,
        (UserGrant(CONFIG_MAP, WRITE, (FREEZE,)),),
    ),
    Ability(
        "Write InstallPlanApprovers and KubevirtConfigs, replace and delete VirtPlatformConfigs",
        UserRole.ADMINISTRATOR,
        (
            *(UserGrant(kind, WRITE) for kind in (INSTALL_PLAN_APPROVER, KUBEVIRT_CONFIG)),
            UserGrant(VIRT_PLATFORM_CONFIG, ("update", "delete")),
        ),
    ),
    Ability("Turn the autopilot on and off, steer its rollouts", None, needs="update on the HyperConverged"),
    Ability(
        "Resume an object that the autopilot has paused, override what it sets", None, needs="get, patch on the object"
    ),
)


def people(installation: Installation) -> list[dict[str, Any]]:
    """The ClusterRoles to bind to people and groups."""
    return [
        _cluster_role(
            f"{installation.prefix}-user-{role}",
            _description(role.included),
            _rules(grant for ability in _abilities(role.included) for grant in ability.grants),
        )
        for role in UserRole
    ]


def aggregated(installation: Installation) -> list[dict[str, Any]]:
    """The ClusterRoles that Kubernetes adds to its own. `edit` includes `view`, and `admin` includes `edit`."""
    found = []
    for default, role in DEFAULT_ROLES.items():
        grants = (grant for ability in _abilities((role,)) for grant in ability.grants if grant.kind in OWN_KINDS)
        obj = _cluster_role(f"{installation.prefix}-aggregate-to-{default}", _description((role,)), _rules(grants))
        obj["metadata"]["labels"][f"{RBAC}/aggregate-to-{default}"] = "true"
        found.append(obj)
    return found


def _abilities(roles: Collection[UserRole]) -> Iterator[Ability]:
    return (ability for ability in ABILITIES if ability.role in roles)


def _description(roles: Collection[UserRole]) -> str:
    return "\n".join(ability.what for ability in _abilities(roles))


def _rules(grants: Iterable[UserGrant]) -> list[dict[str, Any]]:
    """One rule for each resource, with all verbs on it."""
    verbs: dict[tuple[Kind, tuple[str, ...]], dict[str, None]] = {}
    for grant in grants:
        verbs.setdefault((grant.kind, grant.names), {}).update(dict.fromkeys(grant.verbs))
    return [UserGrant(kind, tuple(some), names).rule for (kind, names), some in verbs.items()]


def _cluster_role(name: str, description: str, rules: list[dict[str, Any]]) -> dict[str, Any]:
    labels = component_labels("roles")
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name, "labels": labels, "annotations": {DESCRIPTION: description}},
        "rules": rules,
    }
