"""What people try to do: requests of each kind, as dry runs."""

import uuid
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import yaml

from tests.console.objects import PLAN
from virt_steward.apis.installplanapprover import INSTALL_PLAN_APPROVER
from virt_steward.apis.kubevirtconfig import KUBEVIRT_CONFIG
from virt_steward.apis.profiles import EXAMPLE, HIGHER_DENSITY, LOAD_AWARE
from virt_steward.apis.virtplatformconfig import VIRT_PLATFORM_CONFIG
from virt_steward.controllers.advisor import annotation_keys as plans
from virt_steward.controllers.approver import manual_approval
from virt_steward.controllers.approver.olm import INSTALL_PLAN
from virt_steward.controllers.autopilot import annotation_keys as assets
from virt_steward.controllers.placement.observation import CONFIG_ANNOTATION, MACHINE
from virt_steward.kube.client import Client, Object, Selection
from virt_steward.kube.errors import Conflict
from virt_steward.objects.corekinds import CONFIG_MAP
from virt_steward.objects.identity import Key, Kind, Ref
from virt_steward.platform.hco import HYPERCONVERGED
from virt_steward.platform.machineconfigs import MACHINE_CONFIG


@dataclass(frozen=True, slots=True)
class World:
    """The objects that people decide about."""

    namespace: str
    prefix: str

    def ref(self, kind: Kind, name: str) -> Ref:
        return Ref(
            kind, Key("" if kind in (VIRT_PLATFORM_CONFIG, KUBEVIRT_CONFIG, MACHINE_CONFIG) else self.namespace, name)
        )


Attempt = Callable[[Client, World, str], Awaitable[Any]]


def patched(kind: Kind, name: str, patch: Object) -> Attempt:
    """Send a merge patch as a dry run; `{user}` in it is the name of who sends it."""

    async def attempt(client: Client, world: World, user: str) -> None:
        named = yaml.safe_load(yaml.safe_dump(patch).replace("{user}", user))
        await client.merge_patch(world.ref(kind, name), named, dry_run=True)

    return attempt


def annotated(kind: Kind, name: str, notes: dict[str, str | None], **spec: Any) -> Attempt:
    return patched(kind, name, {"metadata": {"annotations": notes}, **({"spec": spec} if spec else {})})


def listed(kind: Kind) -> Attempt:
    async def attempt(client: Client, _: World, __: str) -> None:
        await client.list(kind, Selection())

    return attempt


def listed_here(kind: Kind) -> Attempt:
    async def attempt(client: Client, world: World, _: str) -> None:
        await client.list(kind, Selection(world.namespace))

    return attempt


def applied(make: Callable[[World], Object]) -> Attempt:
    async def attempt(client: Client, world: World, _: str) -> None:
        await client.apply(make(world), manager="tests", dry_run=True)

    return attempt


async def deleted_config(client: Client, _: World, __: str) -> None:
    """With a uid that no object has: who may delete gets a conflict."""
    with suppress(Conflict):
        await client.delete(Ref(VIRT_PLATFORM_CONFIG, Key("", EXAMPLE)), uid=str(uuid.uuid4()))


def an_approver_policy(world: World) -> Object:
    return {
        "apiVersion": "operators.bapu.cloud/v1alpha1",
        "kind": INSTALL_PLAN_APPROVER.name,
        "metadata": {"name": "pins", "namespace": world.namespace},
        "spec": {},
    }


def a_freeze(world: World) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "virt-steward-freeze", "namespace": world.namespace},
        "data": {"reason": "year end"},
    }


OVERRIDE = {
    plans.OVERRIDE_FREEZE: PLAN,
    plans.OVERRIDE_FREEZE_BY: "{user}",
    plans.OVERRIDE_FREEZE_COMMENT: "incident 7",
}
OVERRIDE_RELEASE = {
    assets.OVERRIDE_FREEZE: "a@1",
    assets.OVERRIDE_FREEZE_BY: "{user}",
    assets.OVERRIDE_FREEZE_COMMENT: "incident 7",
}
OVERRIDE_INSTALL = {
    manual_approval.OVERRIDE_FREEZE: "1",
    manual_approval.OVERRIDE_FREEZE_BY: "{user}",
    manual_approval.OVERRIDE_FREEZE_COMMENT: "incident 7",
}
HCO_NAME = "kubevirt-hyperconverged"
CONFIG, HCO = VIRT_PLATFORM_CONFIG, HYPERCONVERGED
ATTEMPTS: dict[str, Attempt] = {
    "list plans": listed(CONFIG),
    "list approvers here": listed_here(INSTALL_PLAN_APPROVER),
    "list clusters": listed(KUBEVIRT_CONFIG),
    "list InstallPlans": listed(INSTALL_PLAN),
    "list Machines": listed(MACHINE),
    "draft": patched(CONFIG, EXAMPLE, {"spec": {"action": "DryRun", "failurePolicy": "Continue"}}),
    "draft signed": annotated(
        CONFIG, EXAMPLE, {plans.REQUESTED_BY: "{user}", plans.DECISION.by: "{user}"}, action="DryRun"
    ),
    "stop managing": patched(CONFIG, LOAD_AWARE, {"spec": {"action": "Ignore"}}),
    "draft under Apply": patched(CONFIG, LOAD_AWARE, {"spec": {"action": "DryRun", "failurePolicy": "Continue"}}),
    "apply": patched(CONFIG, EXAMPLE, {"spec": {"action": "Apply"}}),
    "roll back": patched(CONFIG, EXAMPLE, {"spec": {"action": "Rollback"}}),
    "options under Apply": patched(
        CONFIG, LOAD_AWARE, {"spec": {"options": {"loadAware": {"deschedulingIntervalSeconds": 120}}}}
    ),
    "remove freeze under Apply": patched(CONFIG, LOAD_AWARE, {"spec": {"freeze": None}}),
    "approve": annotated(CONFIG, EXAMPLE, {plans.APPROVED_PLAN: PLAN, plans.APPROVED_BY: "{user}"}, action="Apply"),
    "approve unsigned": annotated(CONFIG, EXAMPLE, {plans.APPROVED_PLAN: PLAN}),
    "approve with others": annotated(CONFIG, EXAMPLE, {plans.APPROVALS: f"{PLAN} - - {{user}}"}),
    "reject": annotated(CONFIG, EXAMPLE, {plans.REJECTED_PLAN: PLAN, plans.REJECTED_BY: "{user}"}),
    "withdraw approval": annotated(CONFIG, LOAD_AWARE, dict.fromkeys(plans.UNAPPROVED), action="DryRun"),
    "approve InstallPlan": annotated(
        INSTALL_PLAN, "install-1", {manual_approval.APPROVED_BY_USER: "{user}"}, approved=True
    ),
    "change InstallPlan": patched(
        INSTALL_PLAN, "install-1", {"spec": {"clusterServiceVersionNames": ["other.v1"], "approved": True}}
    ),
    "label InstallPlan": patched(INSTALL_PLAN, "install-1", {"metadata": {"labels": {"a": "b"}}}),
    "release": annotated(HCO, HCO_NAME, {assets.ROLLOUT_RELEASE: "a@1", assets.DECISION.by: "{user}"}),
    "turn autopilot on": annotated(HCO, HCO_NAME, {assets.SCOPE: "true"}),
    "remove annotation of HyperConverged": annotated(HCO, HCO_NAME, {"kept": None}),
    "change HyperConverged": patched(
        HCO, HCO_NAME, {"spec": {"virtualization": {"liveMigrationConfig": {"parallelMigrationsPerCluster": 1}}}}
    ),
    "choose": annotated(MACHINE, "web", {CONFIG_ANNOTATION: "east"}),
    "change Machine": patched(MACHINE, "web", {"spec": {"name": "other"}}),
    "finalizer of Machine": patched(MACHINE, "web", {"metadata": {"finalizers": ["example.org/a"]}}),
    "resume": annotated(MACHINE_CONFIG, "90-worker-swap-online", {assets.PAUSED: None}),
    "override freeze": annotated(CONFIG, LOAD_AWARE, OVERRIDE),
    "override freeze of InstallPlan": annotated(INSTALL_PLAN, "install-1", OVERRIDE_INSTALL),
    "override freeze of release": annotated(HCO, HCO_NAME, OVERRIDE_RELEASE),
    "relax approvals": patched(CONFIG, HIGHER_DENSITY, {"spec": {"approvals": {"required": 1}}}),
    "freeze": applied(a_freeze),
    "unfreeze": patched(CONFIG_MAP, "virt-steward-freeze", {"data": None}),
    "write approver": applied(an_approver_policy),
    "write cluster": patched(KUBEVIRT_CONFIG, "east", {"spec": {"weight": 7}}),
    "delete plan": deleted_config,
}
