import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from tests.clients import a_client
from virt_steward.kube.client import Client, Selection
from virt_steward.kube.connection import ConnectionPool, Request
from virt_steward.kube.errors import Forbidden
from virt_steward.objects.identity import Key, Kind, Ref
from virt_steward.runtime.access import (
    APPLY,
    LEASE,
    PATCH,
    READ,
    SECRET,
    WATCH,
    Access,
    Grant,
    GrantError,
    Installation,
    Reach,
    manifests,
    rules,
)
from virt_steward_demo.local.controlplane import ControlPlane

DEADLINE = 20
CONFIG_MAP = Kind("", "ConfigMap", "configmaps")
PLAN = Kind("operators.coreos.com", "InstallPlan", "installplans")
SUBSCRIPTION = Kind("operators.coreos.com", "Subscription", "subscriptions")
WHY = "to be tested"

_numbers = itertools.count(1)


def a_grant(kind: Kind = CONFIG_MAP, verbs: tuple[str, ...] = READ, **changed: Any) -> Grant:
    return Grant(kind, verbs, WHY, **changed)


def a_rule(group: str, resources: list[str], verbs: Iterable[str], names: list[str] | None = None) -> dict[str, Any]:
    named = {"resourceNames": names} if names else {}
    return {"apiGroups": [group], "resources": resources, **named, "verbs": list(verbs)}


@pytest.mark.parametrize(
    ("declare", "complaint"),
    [
        pytest.param(lambda: a_grant(verbs=("update",)), "update cannot be granted", id="update"),
        pytest.param(lambda: a_grant(verbs=("*",)), r"\* cannot be granted", id="any verb"),
        pytest.param(lambda: a_grant(verbs=()), "verbs and a reason are required", id="no verb"),
        pytest.param(lambda: Grant(CONFIG_MAP, READ, ""), "verbs and a reason are required", id="no reason"),
        pytest.param(lambda: a_grant(Kind("", "ConfigMap")), "plural", id="a kind without plural"),
        pytest.param(lambda: a_grant(Kind("*", "ConfigMap", "configmaps")), "wildcards", id="any group"),
        pytest.param(lambda: a_grant(Kind("", "All", "*")), "wildcards", id="any resource"),
        pytest.param(lambda: a_grant(subresource="*"), "wildcards", id="any subresource"),
        pytest.param(lambda: a_grant(names=("",)), "a name is empty", id="an object without name"),
        pytest.param(lambda: a_grant(where=""), "a name is empty", id="a namespace without name"),
        pytest.param(lambda: a_grant(SECRET, WATCH), "namespace by namespace", id="watching all Secrets"),
        pytest.param(lambda: a_grant(SECRET, READ), "namespace by namespace", id="reading any Secret"),
        pytest.param(
            lambda: a_grant(SECRET, WATCH, where=Reach.TARGETS),
            "namespace by namespace",
            id="watching Secrets in targets, which may be all namespaces",
        ),
        pytest.param(lambda: Installation(target_namespaces=("a", "")), "name is empty", id="a target without name"),
        pytest.param(lambda: Installation(secret_namespaces=("",)), "name is empty", id="Secrets of no namespace"),
        pytest.param(lambda: Installation(""), "name is empty", id="running in no namespace"),
    ],
)
def test_grant_refuses_unsafe_declaration(declare: Callable[[], object], complaint: str) -> None:
    with pytest.raises(GrantError, match=complaint):
        declare()


@pytest.mark.parametrize(
    ("grants", "expected"),
    [
        pytest.param(
            [a_grant(SUBSCRIPTION, WATCH), a_grant(PLAN, WATCH)],
            [a_rule("operators.coreos.com", ["installplans", "subscriptions"], WATCH)],
            id="resources of a group that share their verbs are together",
        ),
        pytest.param(
            [a_grant(PLAN, PATCH), a_grant(PLAN, WATCH), a_grant(PLAN, PATCH, subresource="status")],
            [
                a_rule("operators.coreos.com", ["installplans"], ["list", "watch", "patch"]),
                a_rule("operators.coreos.com", ["installplans/status"], ["patch"]),
            ],
            id="verbs on one resource add up, its subresource stays apart",
        ),
        pytest.param(
            [a_grant(LEASE, READ), a_grant(CONFIG_MAP, READ)],
            [a_rule("", ["configmaps"], READ), a_rule("coordination.k8s.io", ["leases"], READ)],
            id="groups stay apart, since a rule allows every combination",
        ),
        pytest.param(
            [
                a_grant(PLAN, WATCH),
                a_grant(verbs=APPLY, names=("b",)),
                a_grant(verbs=APPLY, names=("a",)),
                a_grant(LEASE, APPLY, names=("a",)),
            ],
            [
                a_rule("", ["configmaps"], APPLY, ["a", "b"]),
                a_rule("coordination.k8s.io", ["leases"], APPLY, ["a"]),
                a_rule("operators.coreos.com", ["installplans"], WATCH),
            ],
            id="names of one resource are together, among the others by group",
        ),
        pytest.param(
            [a_grant(verbs=("get", "patch"), names=("a",)), a_grant(verbs=READ)],
            [a_rule("", ["configmaps"], READ), a_rule("", ["configmaps"], PATCH, ["a"])],
            id="what holds for all objects is not repeated for one",
        ),
    ],
)
def test_rules_are_minimal(grants: list[Grant], expected: list[dict[str, Any]]) -> None:
    assert [rules(order) for order in (grants, grants[::-1])] == [expected, expected]


def places(access: Access, installation: Installation) -> dict[str, list[str]]:
    """By namespace, the resources that the roles there speak of."""
    found: dict[str, list[str]] = {}
    for role in manifests(access, installation):
        if role["kind"] in ("Role", "ClusterRole"):
            there = [name for rule in role["rules"] for name in rule["resources"]]
            found.setdefault(role["metadata"].get("namespace", ""), []).extend(there)
    return found


def test_manifests_never_change_role_by_flags() -> None:
    """Each of them is applied on its own, so what one grants must not be gone from the same role of another."""
    access = Access(
        "placement",
        (
            a_grant(SECRET, WATCH, where=Reach.SECRETS),
            a_grant(PLAN, WATCH, where=Reach.TARGETS),
            a_grant(SUBSCRIPTION, WATCH),
        ),
        {"deletes": (a_grant(PLAN, ("delete",)),)},
    )
    installations = (
        Installation(),
        Installation(secret_namespaces=("a", "virt-steward")),
        Installation(target_namespaces=("b", "virt-steward")),
        Installation(extras=("deletes",)),
    )
    known: dict[tuple[str, str, str], Any] = {}
    for manifest in itertools.chain.from_iterable(manifests(access, one) for one in installations):
        metadata = manifest["metadata"]
        same = known.setdefault((manifest["kind"], metadata.get("namespace", ""), metadata["name"]), manifest)
        assert same == manifest


def test_manifests_have_role_per_target_namespace() -> None:
    access = Access("approver", (a_grant(PLAN, WATCH, where=Reach.TARGETS), a_grant(where="openshift-cnv")))

    assert places(access, Installation()) == {
        "": ["customresourcedefinitions", "events", "installplans"],
        "openshift-cnv": ["configmaps"],
        "virt-steward": ["leases"],
    }
    assert places(access, Installation(target_namespaces=("b", "a", "a"))) == {
        "": ["customresourcedefinitions"],
        "a": ["events", "installplans"],
        "b": ["events", "installplans"],
        "openshift-cnv": ["configmaps"],
        "virt-steward": ["leases"],
    }


def test_manifests_grant_secrets_only_in_named_namespaces() -> None:
    access = Access("placement", (a_grant(SECRET, WATCH, where=Reach.SECRETS),))

    assert "secrets" not in str(places(access, Installation(target_namespaces=("a",))))
    assert places(access, Installation(secret_namespaces=("b", "a", "a"))) == {
        "": ["customresourcedefinitions", "events"],
        "a": ["secrets"],
        "b": ["secrets"],
        "virt-steward": ["leases"],
    }


def test_manifests_have_role_per_optional_grant() -> None:
    access = Access("approver", extras={"deletes": (a_grant(PLAN, ("delete",)),)})
    plain, granted = manifests(access, Installation()), manifests(access, Installation(extras=("deletes",)))
    role, binding = granted[len(plain) :]

    assert granted[: len(plain)] == plain
    assert (role["kind"], role["metadata"]["name"]) == ("ClusterRole", "virt-steward-approver-deletes")
    assert [rule["verbs"] for rule in role["rules"]] == [["delete"]]
    assert binding["roleRef"]["name"] == "virt-steward-approver-deletes"
    assert [one["name"] for one in binding["subjects"]] == ["virt-steward-approver"]
    with pytest.raises(GrantError, match="approver has no optional grant it"):
        manifests(Access("approver"), Installation(extras=("it",)))


def test_manifests_explain_each_grant() -> None:
    [role] = [m for m in manifests(Access("approver"), Installation()) if m["kind"] == "Role"]

    assert role["metadata"]["annotations"]["kubernetes.io/description"] == (
        "leases: get, create, patch to elect a leader"
    )


@asynccontextmanager
async def the_account_of(access: Access, control_plane: ControlPlane, namespace: str) -> AsyncIterator[Client]:
    """A client with exactly the generated rights of a controller, which runs in that namespace."""
    installation = Installation(namespace, prefix=namespace)
    async with a_client(control_plane) as admin:
        made = manifests(access, installation)
        for manifest in made:
            await admin.apply(manifest, manager="tests")
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "metadata": {"name": installation.account(access), "namespace": namespace},
            "spec": {},
        }
        token = (await admin.create(request, subresource="token"))["status"]["token"]
        try:
            async with a_client(control_plane, token) as client:
                yield client
        finally:
            for manifest in made:
                kind = Kind(manifest["apiVersion"].rpartition("/")[0], manifest["kind"])
                metadata = manifest["metadata"]
                await admin.delete(Ref(kind, Key(metadata.get("namespace", ""), metadata["name"])))


@pytest.fixture
async def namespace(control_plane: ControlPlane) -> AsyncIterator[str]:
    name = f"access-{next(_numbers)}"
    async with a_client(control_plane) as admin:
        await admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        yield name
        await admin.delete(Ref(Kind("", "Namespace"), Key("", name)))


async def rights(client: Client, namespace: str) -> list[dict[str, Any]]:
    """What the server says that we may do there, without what it grants to everybody."""
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview"}
    answer = await client.create({**review, "metadata": {"name": ""}, "spec": {"namespace": namespace}})
    found = answer["status"]["resourceRules"]
    return [rule for rule in found if not any(name.startswith("selfsubject") for name in rule["resources"])]


def in_order(found: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(found, key=lambda rule: (rule["apiGroups"], rule["resources"]))


async def until_allowed(act: Callable[[], Any]) -> Any:
    """The authorizer learns of new roles a moment after they are stored."""
    async with asyncio.timeout(DEADLINE):
        while True:
            with suppress(Forbidden):
                return await act()
            await asyncio.sleep(0.02)


def a_lease(namespace: str, name: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": {}}


async def test_account_has_exactly_declared_access(control_plane: ControlPlane, namespace: str) -> None:
    access = Access("tested", (a_grant(CONFIG_MAP, WATCH), a_grant(PLAN, PATCH, where="kube-public")))
    everywhere = [
        a_rule("", ["configmaps"], WATCH),
        a_rule("apiextensions.k8s.io", ["customresourcedefinitions"], ["list", "watch"]),
        a_rule("events.k8s.io", ["events"], ["create", "patch"]),
    ]
    lease = a_rule("coordination.k8s.io", ["leases"], ["get", "create", "patch"], ["virt-steward-tested"])
    plan = a_rule("operators.coreos.com", ["installplans"], PATCH)
    async with the_account_of(access, control_plane, namespace) as client:
        await until_allowed(lambda: client.list(CONFIG_MAP))

        assert in_order(await rights(client, "default")) == in_order(everywhere)
        assert in_order(await rights(client, namespace)) == in_order([*everywhere, lease])
        assert in_order(await rights(client, "kube-public")) == in_order([*everywhere, plan])


async def test_named_grant_allows_apply_not_post(control_plane: ControlPlane, namespace: str) -> None:
    access = Access("tested")
    ours = a_lease(namespace, access.lease)
    async with the_account_of(access, control_plane, namespace) as client:
        applied = await until_allowed(lambda: client.apply(ours, manager="tests"))

        assert applied.created
        with pytest.raises(Forbidden, match="cannot create"):
            await client.create(ours)
        with pytest.raises(Forbidden, match="cannot patch"):
            await client.apply(a_lease(namespace, "another"), manager="tests")


async def test_apply_that_creates_needs_create(control_plane: ControlPlane, namespace: str) -> None:
    access = Access("tested", (a_grant(LEASE, (*READ, *PATCH), where=namespace, names=("other",)),))
    async with the_account_of(access, control_plane, namespace) as client:
        await until_allowed(lambda: client.apply(a_lease(namespace, access.lease), manager="tests"))

        with pytest.raises(Forbidden, match="cannot create"):
            await client.apply(a_lease(namespace, "other"), manager="tests")


async def test_streaming_list_needs_only_watch(control_plane: ControlPlane, admin: Client, namespace: str) -> None:
    metadata = {"namespace": namespace, "name": "watched"}
    await admin.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    access = Access("tested", (a_grant(CONFIG_MAP, ("watch",), where=namespace, names=("watched",)),))
    one = Selection.one(Key(namespace, "watched"))
    query = {
        **one.query(),
        "watch": "true",
        "sendInitialEvents": "true",
        "resourceVersionMatch": "NotOlderThan",
        "allowWatchBookmarks": "true",
    }
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    request = Request("watch", "GET", path, what="watch one ConfigMap", query=query, pool=ConnectionPool.WATCHES)
    async with the_account_of(access, control_plane, namespace) as client:

        async def first_bytes() -> bytes:
            async with client.connection.stream(request, silence=DEADLINE) as chunks:
                return await anext(chunks)

        assert b'"watched"' in await until_allowed(first_bytes)
        with pytest.raises(Forbidden, match="cannot list"):
            await client.list(CONFIG_MAP, one)
