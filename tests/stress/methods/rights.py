"""What a ServiceAccount may do, by the roles that are bound to it in the cluster, and what of it was used."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import product
from typing import Any

from tests.audit import Request
from virt_steward.kube.client import Client
from virt_steward.objects.identity import Key, Kind, Ref
from virt_steward.runtime.access import NAMESPACE, RBAC

Object = dict[str, Any]

HANDED_ON = "the autopilot must hold what the roles of its assets grant, and may bind what their bindings name"
NOTIFIES = "only with --notify, which no method sets"
NOT_REACHED = {
    "autopilot bind clusterroles.rbac.authorization.k8s.io *": HANDED_ON,
    "autopilot use securitycontextconstraints.security.openshift.io *": HANDED_ON,
    "autopilot * persistentvolumeclaims": HANDED_ON,
    "autopilot * pods": HANDED_ON,
    "autopilot * virtualmachineinstances.kubevirt.io": HANDED_ON,
    "autopilot * configmaps extension-apiserver-authentication": HANDED_ON,
    "* create configmaps in virt-steward": NOTIFIES,
    "* get configmaps virt-steward-notified-* in virt-steward": NOTIFIES,
    "* patch configmaps virt-steward-notified-* in virt-steward": NOTIFIES,
    "* get validatingadmissionpolicies.* approved-by.*": "only where several people must approve",
    "* get validatingadmissionpolicybindings.* approved-by.*": "only where several people must approve",
    "autopilot * services virt-platform-autopilot-metrics": "only where manifests of the Go operator run our image",
    "autopilot * nodehealthchecks.* virt-platform-workers": "not wanted beside the asset node-remediation",
    "autopilot delete uiplugins.* kubevirt-plugin": "its CRD refuses a new one of that name; old clusters have it",
}
"""Rights that no step of the tour needs, by pattern, each with its reason."""
SOMETIMES = {"* patch events.events.k8s.io": "only when an event repeats after a minute"}
"""Rights that depend on how long the tour takes."""


@dataclass(frozen=True, slots=True, order=True)
class Right:
    """One verb on one resource. Empty: in any namespace, with any name."""

    verb: str
    group: str
    resource: str
    name: str = ""
    namespace: str = ""

    def __str__(self) -> str:
        place = f" in {self.namespace}" if self.namespace else ""
        return f"{self.verb} {'.'.join(filter(None, (self.resource, self.group)))} {self.name}".rstrip() + place

    def allows(self, used: "Right") -> bool:
        return (self.verb, self.group, self.resource) == (used.verb, used.group, used.resource) and all(
            mine in ("", theirs) for mine, theirs in ((self.name, used.name), (self.namespace, used.namespace))
        )


def user_of(controller: str) -> str:
    return f"system:serviceaccount:{NAMESPACE}:virt-steward-{controller}"


async def granted(client: Client, controller: str) -> set[Right]:
    """All rights of the ServiceAccount of a controller. Wildcards, groups and paths must not be in its roles."""
    subject = {"kind": "ServiceAccount", "name": f"virt-steward-{controller}", "namespace": NAMESPACE}
    found: set[Right] = set()
    for kind in ("ClusterRoleBinding", "RoleBinding"):
        for binding in await client.list(Kind(RBAC, kind)):
            if any(subject.items() <= one.items() for one in binding.get("subjects") or ()):
                found |= {*await _bound(client, binding)}
    return found


async def _bound(client: Client, binding: Object) -> list[Right]:
    namespace = binding["metadata"].get("namespace", "")
    role = binding["roleRef"]
    key = Key(namespace if role["kind"] == "Role" else "", role["name"])
    rules = (await client.get(Ref(Kind(RBAC, role["kind"]), key)))["rules"]
    return [right for rule in rules for right in _rights(rule, namespace)]


def _rights(rule: Object, namespace: str) -> Iterator[Right]:
    assert rule.keys() <= {"apiGroups", "resources", "resourceNames", "verbs"}
    assert "*" not in (*rule["apiGroups"], *rule["resources"], *rule["verbs"])
    names = rule.get("resourceNames") or [""]
    for group, resource, name, verb in product(rule["apiGroups"], rule["resources"], names, rule["verbs"]):
        yield Right(verb, group, resource, name, namespace)


def anywhere(rights: Iterable[Right]) -> set[Right]:
    """The same without namespaces: OLM grants in the whole cluster what others grant in our namespace."""
    return {replace(one, namespace="") for one in rights}


def denied(requests: Iterable[Request], controller: str) -> list[str]:
    return [f"{one.verb} {one.uri}" for one in requests if one.user == user_of(controller) and one.code == 403]


def unused(rights: Iterable[Right], requests: Iterable[Request], controller: str) -> set[Right]:
    """The rights that no accepted request has needed.

    A server that streams lists is never asked for one, so a used `watch` excuses the `list` beside it.
    """
    granted_ones = [*rights]
    used = {right for one in requests if one.user == user_of(controller) for right in _uses(one)}
    left = {*granted_ones}.difference(*(_narrowest(granted_ones, one) for one in used))
    watched = {right for right in granted_ones if right.verb == "watch" and right not in left}
    return {right for right in left if right.verb != "list" or replace(right, verb="watch") not in watched}


def _narrowest(rights: Iterable[Right], used: Right) -> list[Right]:
    """The rights that a request needs: beside one for its name or namespace, a wider one is not needed."""
    allowing = [right for right in rights if right.allows(used)]
    most = max((bool(right.name) + bool(right.namespace) for right in allowing), default=0)
    return [right for right in allowing if bool(right.name) + bool(right.namespace) == most]


def _uses(request: Request) -> Iterator[Right]:
    if request.code >= 300 and request.code not in (404, 409, 422):  # what is refused for another reason was allowed
        return
    resource = f"{request.resource}/{request.subresource}" if request.subresource else request.resource
    right = Right(request.verb, request.group, resource, request.name, request.namespace)
    yield right
    if request.code == 201:  # an apply that creates
        yield replace(right, verb="create")


def in_vain(rights: Iterable[tuple[str, Right]]) -> list[str]:
    """Of the unused rights of controllers, those without a reason; and the reasons that excuse no right."""
    left = [f"{controller} {right}" for controller, right in rights]
    unexplained = [one for one in left if not any(fnmatchcase(one, reason) for reason in (*NOT_REACHED, *SOMETIMES))]
    needless = [
        f"needless reason: {reason}" for reason in NOT_REACHED if not any(fnmatchcase(one, reason) for one in left)
    ]
    return [*sorted(unexplained), *needless]
