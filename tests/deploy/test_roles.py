"""Who may do what: every cell of the table, on an API server with the roles and the policies, by impersonation."""

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from itertools import pairwise

import pytest
import pytest_asyncio
import yaml

from tests.clients import a_client
from tests.console.objects import PLAN, a_review, define_all, put, put_config
from tests.deploy.attempts import ATTEMPTS, CONFIG, HCO, HCO_NAME, Attempt, World, a_freeze, annotated
from tests.eventually import eventually
from tests.machines import a_config, a_machine
from tests.operators import a_pending_plan, create
from virt_steward.apis.crds import CRDS
from virt_steward.apis.installplanapprover import INSTALL_PLAN_APPROVER
from virt_steward.apis.profiles import EXAMPLE, HIGHER_DENSITY, LOAD_AWARE
from virt_steward.controllers.advisor import annotation_keys as plans
from virt_steward.controllers.approver.olm import APPROVALS, INSTALL_PLAN
from virt_steward.controllers.autopilot import annotation_keys as assets
from virt_steward.controllers.placement.observation import MACHINE
from virt_steward.kube.client import Client, Object
from virt_steward.kube.connection import Connection, unobserved
from virt_steward.kube.discovery import Discovery
from virt_steward.kube.errors import Forbidden
from virt_steward.kube.kubeconfig import load_from_bytes
from virt_steward.objects.identity import Key, Kind, Ref, ref_of
from virt_steward.packaging.parts import POLICIES
from virt_steward.packaging.roles import ABILITIES, Ability, UserRole, aggregated, people
from virt_steward.runtime.access import RBAC, Installation
from virt_steward_demo.local.controlplane import ControlPlane

NAME = "jane"
CLUSTER_ROLE = Kind(RBAC, "ClusterRole", "clusterroles")
WRITER = "test-writer"
"""A role as 0.1 and the Go advisor had it: all rights to write VirtPlatformConfigs, and no verb of ours."""


# Written by hand, and not derived from the table in the code. v: viewer, r: requester, a: approver, m: administrator;
# V, E, A: view, edit and admin of Kubernetes in the whole cluster; n: admin of Kubernetes in the namespace;
# N: approver in the namespace; w: who may write VirtPlatformConfigs as in 0.1.
COLUMNS = "vramVEAnNw"
ALLOWED = {
    "list plans": "vramVEAw",
    "list approvers here": "vramVEAnN",
    "list clusters": "vramVEA",
    "list InstallPlans": "vram",
    "list Machines": "vram",
    "draft": "ramEAw",
    "draft signed": "ramEAw",
    "stop managing": "ramEAw",
    "draft under Apply": "ramEAw",
    "apply": "amAw",
    "roll back": "amAw",
    "options under Apply": "amAw",
    "remove freeze under Apply": "amAw",
    "approve": "amAw",
    "approve unsigned": "amAw",
    "approve with others": "amAw",
    "reject": "amAw",
    "withdraw approval": "ramEAw",
    "approve InstallPlan": "amN",
    "change InstallPlan": "",
    "label InstallPlan": "",
    "release": "amN",
    "turn autopilot on": "",
    "remove annotation of HyperConverged": "",
    "change HyperConverged": "",
    "choose": "amN",
    "change Machine": "",
    "finalizer of Machine": "",
    "resume": "",
    "override freeze": "m",
    "override freeze of InstallPlan": "m",
    "override freeze of release": "m",
    "relax approvals": "m",
    "freeze": "mEAn",  # Kubernetes' own edit and admin write all ConfigMaps
    "unfreeze": "mEAn",
    "write approver": "m",
    "write cluster": "m",
    "delete plan": "mw",
}


ATTEMPTS_OF = {
    "See profiles": ("list plans", "list approvers here", "list clusters"),
    "See what they are about": ("list InstallPlans", "list Machines"),
    "Ask for a plan": ("draft", "draft signed", "stop managing", "draft under Apply", "withdraw approval"),
    "Approve or reject a plan": (
        "apply",
        "roll back",
        "options under Apply",
        "remove freeze under Apply",
        "approve",
        "approve unsigned",
        "approve with others",
        "reject",
    ),
    "Approve an InstallPlan": ("approve InstallPlan",),
    "Release": ("release",),
    "Choose": ("choose",),
    "Override a freeze": ("override freeze", "override freeze of InstallPlan", "override freeze of release"),
    "Lower": ("relax approvals",),
    "Begin": ("freeze", "unfreeze"),
    "Write": ("write approver", "write cluster", "delete plan"),
    "Turn": ("turn autopilot on", "change HyperConverged", "remove annotation of HyperConverged"),
    "Resume": ("resume",),
}
"""The attempts that show a row of the table, by its first words."""


@pytest.mark.parametrize("ability", ABILITIES, ids=lambda one: one.what.split(" (")[0])
def test_table_of_roles_says_what_is_tested(ability: Ability) -> None:
    [attempts] = [names for words, names in ATTEMPTS_OF.items() if ability.what.startswith(words)]
    roles = {letter for letter, role in zip("vram", UserRole, strict=True) if ability.role in role.included}
    assert {name: set(ALLOWED[name]) & set("vram") for name in attempts} == dict.fromkeys(attempts, roles)


def role_of(column: str, prefix: str) -> str:
    ours = dict(zip("vram", UserRole, strict=True)) | {"N": UserRole.APPROVER}
    theirs = {"V": "view", "E": "edit", "A": "admin", "n": "admin", "w": WRITER}
    return theirs.get(column) or f"{prefix}-user-{ours[column]}"


def is_namespaced(column: str) -> bool:
    return column in "nN"


def a_binding(column: str, world: World) -> Object:
    """The role of the column, for a group of people."""
    here = {"namespace": world.namespace} if is_namespaced(column) else {}
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "RoleBinding" if here else "ClusterRoleBinding",
        "metadata": {"name": f"{world.prefix}-{ord(column)}", **here},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role_of(column, world.prefix)},
        "subjects": [{"apiGroup": RBAC, "kind": "Group", "name": group_of(column, world)}],
    }


def group_of(column: str, world: World) -> str:
    return f"{world.prefix}-{ord(column)}"


@asynccontextmanager
async def a_person(control_plane: ControlPlane, column: str, world: World) -> AsyncIterator[Client]:
    """A client of the admin who impersonates somebody of that group."""
    config = yaml.safe_load(control_plane.kubeconfig.read_text())
    for user in config["users"]:
        user["user"] |= {"as": NAME, "as-groups": [group_of(column, world)]}
    cluster = load_from_bytes(yaml.safe_dump(config).encode(), source="tests", trusted=True, env={})
    connection = Connection(cluster, user_agent="tests", observe=unobserved)
    try:
        yield Client(connection, Discovery(connection))
    finally:
        await connection.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(control_plane: ControlPlane) -> AsyncIterator[World]:
    """The roles, the policies and one object of each kind, on a cluster where the policies are in force."""
    name = f"roles-{uuid.uuid4().hex[:8]}"
    world = World(name, name)
    objects = [*people(Installation(prefix=name)), *aggregated(Installation(prefix=name)), a_writer()]
    objects += [a_binding(column, world) for column in COLUMNS]
    cleanup = [*objects, *POLICIES]
    async with a_client(control_plane) as admin:
        await admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        await define_all(admin)
        await make_objects(admin, world)
        for obj in cleanup:
            await admin.create(obj)
        assert await eventually(partial(is_ready, admin, world), within=60)
    yield world
    async with a_client(control_plane) as admin:
        for obj in (*cleanup, *cluster_scoped(world)):
            await admin.delete(ref_of(obj))
        assert await eventually(partial(is_over, admin), within=60)


def a_writer() -> Object:
    verbs = ["get", "list", "watch", "create", "update", "patch", "delete"]
    rule = {"apiGroups": [CONFIG.group], "resources": [CONFIG.plural], "verbs": verbs}
    return {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": WRITER}, "rules": [rule]}


def cluster_scoped(world: World) -> list[Object]:
    head = {"apiVersion": "advisor.kubevirt.io/v1alpha1", "kind": CONFIG.name}
    machine_config = {"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig"}
    return [
        *({**head, "metadata": {"name": name}} for name in (EXAMPLE, LOAD_AWARE, HIGHER_DENSITY)),
        a_config("east", Key(world.namespace, "none")),
        {**machine_config, "metadata": {"name": "90-worker-swap-online"}},
    ]


async def make_objects(admin: Client, world: World) -> None:
    await put_config(admin, a_review(), EXAMPLE, action="Ignore")
    await put_config(
        admin,
        a_review(),
        LOAD_AWARE,
        action="Apply",
        annotations={plans.APPROVED_PLAN: PLAN, plans.APPROVED_BY: "admin"},
    )
    freeze = {"schedule": "0 0 24 12 *", "duration": "10d"}
    await admin.merge_patch(Ref(CONFIG, Key("", LOAD_AWARE)), {"spec": {"freeze": freeze}})
    await put_config(admin, a_review(), HIGHER_DENSITY)
    await admin.merge_patch(Ref(CONFIG, Key("", HIGHER_DENSITY)), {"spec": {"approvals": {"required": 2}}})
    await create(admin, a_pending_plan(world.namespace))
    hco = {"apiVersion": "hco.kubevirt.io/v1", "kind": HCO.name, "spec": {}}
    await admin.create(
        {**hco, "metadata": {"name": HCO_NAME, "namespace": world.namespace, "annotations": {"kept": "x"}}}
    )
    await admin.create(a_freeze(world))
    await admin.create(a_machine(world.namespace, "web"))
    await put(admin, a_config("east", Key(world.namespace, "none")))
    paused = {"name": "90-worker-swap-online", "annotations": {assets.PAUSED: "true"}}
    await put(
        admin,
        {"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig", "metadata": paused, "spec": {}},
    )


async def is_ready(admin: Client, world: World) -> bool:
    """Kubernetes has added our roles to its own, and refuses what each policy refuses."""
    role = await admin.get(Ref(CLUSTER_ROLE, Key("", "admin")))
    if not any("approve" in rule["verbs"] for rule in role["rules"]):
        return False
    probes = (
        annotated(CONFIG, EXAMPLE, {plans.APPROVED_BY: "nobody"}),
        annotated(HCO, HCO_NAME, {assets.OVERRIDE_FREEZE: "a", assets.OVERRIDE_FREEZE_BY: "nobody"}),
        annotated(INSTALL_PLAN, "install-1", {APPROVALS: "1 - - nobody"}),
        annotated(MACHINE, "web", {"vitistack.io/decided-by": "nobody"}),
        annotated(HCO, HCO_NAME, {assets.DECISION.by: "nobody"}),
    )
    return all([await is_refused(probe, admin, world, "admin") for probe in probes])


async def is_over(admin: Client) -> bool:
    """The policies and the roles have gone."""
    config = {"apiVersion": "advisor.kubevirt.io/v1alpha1", "kind": CONFIG.name, "spec": {"profile": EXAMPLE}}
    metadata = {"name": EXAMPLE, "annotations": {plans.APPROVED_BY: "nobody"}}
    try:
        await admin.create({**config, "metadata": metadata}, dry_run=True)
    except Forbidden:
        return False
    role = await admin.get(Ref(CLUSTER_ROLE, Key("", "admin")))
    return not any("approve" in rule["verbs"] for rule in role["rules"])


async def is_refused(attempt: Attempt, client: Client, world: World, user: str) -> bool:
    try:
        await attempt(client, world, user)
    except Forbidden:
        return True
    return False


@pytest.mark.parametrize("column", COLUMNS)
async def test_role_allows_what_the_table_says(column: str, world: World, control_plane: ControlPlane) -> None:
    async with a_person(control_plane, column, world) as client:
        allowed = [name for name, attempt in ATTEMPTS.items() if not await is_refused(attempt, client, world, NAME)]
    assert allowed == [name for name, columns in ALLOWED.items() if column in columns]


def test_roles_grow_and_name_their_abilities() -> None:
    found = {obj["metadata"]["name"]: rights_of(obj) for obj in people(Installation())}
    names = [f"virt-steward-user-{role}" for role in ("viewer", "requester", "approver", "administrator")]
    assert [*found] == names
    for less, more in pairwise(names):
        assert found[less] < found[more]
    assert not {verb for rights in found.values() for _, _, verb in rights} & {"*", "impersonate", "escalate", "bind"}


def test_roles_of_kubernetes_get_rights_on_our_kinds_alone() -> None:
    found = {obj["metadata"]["name"]: obj for obj in aggregated(Installation())}
    assert {name: obj["metadata"]["labels"].keys() & LABELS for name, obj in found.items()} == {
        f"virt-steward-aggregate-to-{name}": {f"{RBAC}/aggregate-to-{name}"} for name in ("view", "edit", "admin")
    }
    ours = {(crd.kind.group, crd.kind.plural) for crd in CRDS}
    rights = {right for obj in found.values() for right in rights_of(obj)}
    assert {(group, resource) for group, resource, _ in rights} <= ours
    # In a namespace, by a RoleBinding, only this one counts: the others are of cluster-scoped kinds.
    assert {verb for _, resource, verb in rights if resource == INSTALL_PLAN_APPROVER.plural} == {
        "get",
        "list",
        "watch",
    }


LABELS = {f"{RBAC}/aggregate-to-{name}" for name in ("view", "edit", "admin", "cluster-reader")}


def rights_of(role: Object) -> set[tuple[str, str, str]]:
    return {
        (group, resource, verb)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
