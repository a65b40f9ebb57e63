"""RBAC: a controller declares grants, and its ServiceAccount, roles and bindings are generated from them."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

from virt_steward.kube.discovery import CUSTOM_RESOURCE_DEFINITION
from virt_steward.kube.events import EVENT
from virt_steward.objects import installation
from virt_steward.objects.errors import UserError
from virt_steward.objects.identity import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

READ = ("get",)
WATCH = ("list", "watch")  # a streaming list needs only watch; list is for servers without streaming lists
PATCH = ("patch",)
APPLY = ("create", "patch")  # an apply that creates the object also needs create, by name

BY_NAME_ONLY = ("bind", "use")
"""Verbs that pass rights on, so they are granted only with resourceNames."""
VERBS = ("get", "list", "watch", "create", "patch", "delete", *BY_NAME_ONLY)
"""All verbs that can be granted, in the order of rules. `update` is missing on purpose: it overwrites."""

LEASE = Kind("coordination.k8s.io", "Lease", "leases")
SECRET = Kind("", "Secret", "secrets")

NAMESPACE = installation.NAMESPACE
APP = {"app.kubernetes.io/name": "virt-steward"}
"""The label of everything that an installation consists of."""
APP_SELECTOR = ",".join(f"{name}={value}" for name, value in APP.items())
ALL_IN_ONE = "all-in-one"
"""The component that runs all controllers, if the installation has one Deployment for them."""
RBAC = "rbac.authorization.k8s.io"
DESCRIPTION = "kubernetes.io/description"


class GrantError(UserError):
    """A grant that is not allowed."""


class Reach(Enum):
    """Where a grant applies."""

    CLUSTER = auto()
    """In the whole cluster: for cluster-scoped kinds."""
    TARGETS = auto()
    """In the target namespaces; in the whole cluster if the installation has none."""
    OWN = auto()
    """In the namespace where the controller runs."""
    SECRETS = auto()
    """In the namespaces with Secrets for it; nowhere if the installation has none."""


PARTS = {Reach.TARGETS: "targets", Reach.SECRETS: "secrets"}
"""Roles of their own, since the installation says in which namespaces they are."""


@dataclass(frozen=True, slots=True)
class Grant:
    """Verbs on one resource, and why they are needed."""

    kind: Kind
    verbs: tuple[str, ...]
    why: str
    """For the admin who reviews the role: `to see which plans are pending`."""
    where: Reach | str = Reach.CLUSTER
    """A string is a namespace."""
    subresource: str = ""
    names: tuple[str, ...] = ()
    """Only these objects (resourceNames). Works for watches by field selector and for applies, not for a POST."""
    part: str = ""
    """The role that it belongs to, if some installations have it and others do not."""

    def __post_init__(self) -> None:
        if unknown := [verb for verb in self.verbs if verb not in VERBS]:
            raise GrantError(f"{self.kind}: {', '.join(unknown)} cannot be granted, only {', '.join(VERBS)}")
        if not self.verbs or not self.why:
            raise GrantError(f"{self.kind}: verbs and a reason are required")
        if not self.names and (unnamed := [verb for verb in self.verbs if verb in BY_NAME_ONLY]):
            raise GrantError(f"{self.kind}: {', '.join(unnamed)} can be granted only by name")
        if not self.kind.plural:
            raise GrantError(f"{self.kind}: the plural of the kind is required")
        if "" in (self.where, *self.names):  # in a rule, an empty name would mean all
            raise GrantError(f"{self.kind}: a name is empty")
        if any("*" in part for part in (self.kind.group, self.kind.plural, self.subresource, *self.names)):
            raise GrantError(f"{self.kind}: wildcards are not allowed")
        if self.kind == SECRET and self.where in (Reach.CLUSTER, Reach.TARGETS):
            raise GrantError("Secrets are granted namespace by namespace, never cluster-wide")

    @property
    def resource(self) -> str:
        return f"{self.kind.plural}/{self.subresource}" if self.subresource else self.kind.plural

    @property
    def role(self) -> str:
        """The suffix of its role. The content of a role must not depend on flags: see `manifests`."""
        return self.part or (PARTS.get(self.where, "") if isinstance(self.where, Reach) else "")


def lease_of(controller: str) -> str:
    return f"virt-steward-{controller}"


@dataclass(frozen=True, slots=True)
class Access:
    """All grants of one controller."""

    controller: str
    grants: tuple[Grant, ...] = ()
    extras: Mapping[str, tuple[Grant, ...]] = field(default_factory=dict)
    """Optional grants of an installation, each in a role of its own, by name."""
    only_looks: bool = False
    """It never writes, so it needs neither a lease nor events."""
    other_lease: str = ""
    """The name of the Lease of another implementation of this controller; it stands by while that one is renewed."""

    @property
    def lease(self) -> str:
        """The name of the Lease by which its replicas elect a leader."""
        return lease_of(self.controller)

    @property
    def all_grants(self) -> tuple[Grant, ...]:
        """Its own grants, and those of the runtime."""
        kinds = Grant(CUSTOM_RESOURCE_DEFINITION, WATCH, "to notice when kinds are added or removed")
        if self.only_looks:
            return (*self.grants, kinds)
        why = "to stand by while another operator does the same work"
        other = (Grant(LEASE, WATCH, why, names=(self.other_lease,)),) if self.other_lease else ()
        return (
            *self.grants,
            Grant(LEASE, (*READ, *APPLY), "to elect a leader", where=Reach.OWN, names=(self.lease,)),
            *other,
            Grant(EVENT, ("create", "patch"), "to record events", where=Reach.TARGETS),
            kinds,
        )


@dataclass(frozen=True, slots=True)
class Installation:
    """Where controllers run, and which namespaces they manage."""

    namespace: str = NAMESPACE
    prefix: str = "virt-steward"
    """The prefix of ServiceAccounts and roles, before the controller's name."""
    target_namespaces: tuple[str, ...] = ()
    """None means all, by a ClusterRole; otherwise a Role in each."""
    secret_namespaces: tuple[str, ...] = ()
    """Where Secrets may be read. None means nowhere."""
    extras: tuple[str, ...] = ()
    """The names of optional grants."""

    def __post_init__(self) -> None:
        if not all(
            (self.namespace, *self.target_namespaces, *self.secret_namespaces)
        ):  # an empty one would mean the whole cluster
            raise GrantError("a namespace name is empty")

    def account(self, access: Access) -> str:
        return f"{self.prefix}-{access.controller}"


def manifests(access: Access, installation: Installation) -> list[dict[str, Any]]:
    """The ServiceAccount of a controller, and its roles with their bindings: first cluster-wide, then by namespace.

    People apply this output again with other flags. So flags add roles, and never change one: otherwise the output for
    Secrets in namespace `b` would replace the role that allows those in the controller's own namespace.
    """
    account = {"apiVersion": "v1", "kind": "ServiceAccount"}
    found: list[dict[str, Any]] = [account | {"metadata": _metadata(access, installation, installation.namespace)}]
    for (namespace, part), grants in _places(access.all_grants, installation):
        found += _role_and_binding(access, installation, namespace, grants, part)
    for extra in installation.extras:
        if extra not in access.extras:
            raise GrantError(f"{access.controller} has no optional grant {extra}")
        for (namespace, _), grants in _places(access.extras[extra], installation):
            found += _role_and_binding(access, installation, namespace, grants, extra)
    return found


def _places(grants: Iterable[Grant], installation: Installation) -> list[tuple[tuple[str, str], list[Grant]]]:
    """The grants by namespace and role; those for the whole cluster come first."""
    places: dict[tuple[str, str], list[Grant]] = {}
    for grant in grants:
        for namespace in _namespaces(grant, installation):
            places.setdefault((namespace, grant.role), []).append(grant)
    return sorted(places.items())


def rules(grants: Iterable[Grant]) -> list[dict[str, Any]]:
    """The smallest set of rules for these grants, in a stable order."""
    verbs_on: dict[tuple[str, str, str], set[str]] = {}
    for grant in grants:
        for name in grant.names or ("",):
            verbs_on.setdefault((grant.kind.group, grant.resource, name), set()).update(grant.verbs)
    resources: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    names: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    for (group, resource, name), verbs in sorted(verbs_on.items()):
        if not name:
            resources.setdefault((group, _ordered(verbs)), []).append(resource)
        elif left := verbs - verbs_on.get((group, resource, ""), set()):  # verbs on all objects need no names
            names.setdefault((group, resource, _ordered(left)), []).append(name)
    found = [_rule(group, group_resources, verbs) for (group, verbs), group_resources in resources.items()]
    found += [_rule(group, [resource], verbs, some) for (group, resource, verbs), some in names.items()]
    return sorted(found, key=lambda rule: (rule["apiGroups"], rule["resources"], rule.get("resourceNames", [])))


def _rule(group: str, resources: list[str], verbs: tuple[str, ...], names: list[str] | None = None) -> dict[str, Any]:
    rule = {"apiGroups": [group], "resources": resources}
    if names:
        rule["resourceNames"] = names
    return rule | {"verbs": list(verbs)}


def _ordered(verbs: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(verbs, key=VERBS.index))


def _namespaces(grant: Grant, installation: Installation) -> tuple[str, ...]:
    """The namespaces of the grant; the empty string is the whole cluster."""
    match grant.where:
        case Reach.CLUSTER:
            return ("",)
        case Reach.TARGETS:
            return tuple(dict.fromkeys(installation.target_namespaces)) or ("",)
        case Reach.OWN:
            return (installation.namespace,)
        case Reach.SECRETS:
            return tuple(dict.fromkeys(installation.secret_namespaces))
        case namespace:
            return (namespace,)


def _role_and_binding(
    access: Access, installation: Installation, namespace: str, grants: Sequence[Grant], part: str
) -> list[dict[str, Any]]:
    prefix = "" if namespace else "Cluster"
    account = installation.account(access)
    metadata = _metadata(access, installation, namespace)
    metadata["name"] = f"{account}-{part}" if part else account
    role = {
        "apiVersion": f"{RBAC}/v1",
        "kind": f"{prefix}Role",
        "metadata": metadata | {"annotations": {DESCRIPTION: _reasons(grants)}},
        "rules": rules(grants),
    }
    binding = {
        "apiVersion": f"{RBAC}/v1",
        "kind": f"{prefix}RoleBinding",
        "metadata": metadata,
        "roleRef": {"apiGroup": RBAC, "kind": role["kind"], "name": metadata["name"]},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": installation.namespace}],
    }
    return [role, binding]


def component_labels(component: str) -> dict[str, str]:
    """The labels of an object of an installation."""
    return {**APP, "app.kubernetes.io/component": component}


def _metadata(access: Access, installation: Installation, namespace: str) -> dict[str, Any]:
    place = {"namespace": namespace} if namespace else {}
    return {"name": installation.account(access)} | place | {"labels": component_labels(access.controller)}


def _reasons(grants: Iterable[Grant]) -> str:
    """One line per grant, for the admin who reviews the role."""
    return "\n".join(f"{grant.resource}: {', '.join(_ordered(grant.verbs))} {grant.why}" for grant in grants)
