"""What people do on the cluster while faults happen: a list of steps from the seed, and what is wanted in the end."""

import asyncio
import random
from contextlib import suppress
from dataclasses import dataclass, field

from tests.chaos.faults import LASTS, MEMBERS
from tests.chaos.holds import FREEZES, HELD, POLICIES, PREFIX, Holds, Step
from tests.chaos.members import ChaosMember
from tests.checker.advisor import CONFIGS
from tests.checker.approver import PLANS, SUBSCRIPTIONS
from tests.checker.facts import Wanted
from tests.checker.history import Ref as Judged
from tests.checker.placement import CLUSTER, MACHINES
from tests.controllers.advisor.rig import HCO, a_descheduler, no_reboots, the_config
from tests.controllers.approver.lifecycle import an_approver
from tests.leftovers import delete_all
from tests.machines import a_machine, the_machine
from virt_steward.apis.installplanapprover import INSTALL_PLAN_APPROVER
from virt_steward.apis.virtplatformconfig import API_VERSION, VIRT_PLATFORM_CONFIG
from virt_steward.catalog.load import load
from virt_steward.controllers.advisor.annotation_keys import APPROVED_BY, APPROVED_PLAN
from virt_steward.controllers.advisor.profiles.load_aware_rebalancing import DESCHEDULER
from virt_steward.controllers.approver.olm import APPROVED_BY as STAMP
from virt_steward.controllers.approver.olm import CLUSTER_SERVICE_VERSION, INSTALL_PLAN, SUBSCRIPTION
from virt_steward.controllers.autopilot.rollouts.staged import read_entries, ref_of_staging
from virt_steward.controllers.autopilot.watches import ref_of_asset
from virt_steward.controllers.placement.observation import MACHINE
from virt_steward.kube.client import Object, Selection
from virt_steward.kube.errors import AlreadyExists, Conflict, Forbidden, Invalid, KubeError, NotFound, NotServed
from virt_steward.objects.identity import Key, Ref
from virt_steward.plans.preimage import CONTROLLER_REVISION
from virt_steward.platform.machineconfigs import MACHINE_CONFIG
from virt_steward.runtime.access import NAMESPACE
from virt_steward_demo.simulation.install import make_namespace
from virt_steward_demo.simulation.installplans import a_subscription, csv_step

SERVICE, ALERTS, KUBELET = "metrics-service", "prometheus-alerts", "kubelet-perf-settings"
ASSETS = {name: ref_of_asset(asset, HCO.key) for name in (SERVICE, ALERTS, KUBELET) if (asset := load().find(name))}
PACKAGE = "backup-operator"
VERSIONS = (f"{PACKAGE}.v2.0.0", f"{PACKAGE}.v2.1.0")
WRONG_HASH = "sha256:" + "0" * 64
UNTIL_DONE = 90.0
APP = "virt-platform-autopilot"
"""The label of the Service that the asset wants."""
FINAL_INTERVAL = 600
UNRELEASED = 99
CONFIG = Judged(CONFIGS, "", the_config().key.name)


BEGINNING = (Step(0.0, "activate"), Step(0.1, "subscribe", 0), Step(1.0, "approve"))
"""In every seed, so that there is something to disturb."""
OFTEN = (
    "drift-service",
    "drift-alerts",
    "ignore-service",
    "pods",
    "release",
    "other-config",
    "drift-kubelet",
    "policy",
    "options",
    "approve",
    "approve",
    "approve-stale",
    "drift-descheduler",
    "subscribe",
    "move-pin",
    "forge",
    "slow-plan",
    "machine",
    "machine",
    "machine",
    "delete-machine",
    "freeze",
    "close-gate",
    "hold-plan",
    "hold-plan",
    "hold-approvals",
    "people-approve",
    "people-approve",
    "roll-back",
    "opt-out",
    "opt-in",
)
ENDS = {"freeze": "thaw", "close-gate": "open-gate"}
"""What holds everything back begins early, and ends after some seconds."""
BRINGS = {
    "freeze": ("subscribe",),
    "close-gate": ("subscribe", "options"),
    "hold-plan": ("options", "approve", "people-approve"),
    "hold-approvals": ("subscribe", "people-approve"),
    "roll-back": ("approve",),
}
"""Work for which a step makes a difference, a while after it."""
CHOICES = {
    "machine": (*MEMBERS, ""),
    "freeze": tuple(FREEZES),
    "hold-plan": HELD,
    "hold-approvals": HELD,
    "policy": POLICIES,
}


def steps_of(seed: int) -> tuple[Step, ...]:
    rng = random.Random(f"workload {seed}")
    steps = [*BEGINNING]
    for number in range(1, rng.randint(11, 17)):
        action = rng.choice(OFTEN)
        at = round(rng.uniform(0.3, LASTS if action not in ENDS else LASTS / 3), 2)
        steps.append(Step(at, action, number, rng.choice(CHOICES.get(action, ("",)))))
        last = round(rng.uniform(at + LASTS / 2, LASTS + 1), 2) if action in ENDS else at + 2
        steps += (
            Step(round(rng.uniform(at + 0.5, last), 2), brought, 100 + number) for brought in BRINGS.get(action, ())
        )
        if action in ENDS:
            steps.append(Step(last, ENDS[action], number))
    return tuple(sorted(steps))


def has_descheduler(seed: int) -> bool:
    """Whether somebody has set up a KubeDescheduler before; then a rollback does not delete it."""
    return random.Random(f"prepare {seed}").choice((True, False))


@dataclass(slots=True)
class Workload(Holds):
    """The people of one seed; their names are in everything that they create."""

    members: dict[str, ChaosMember]
    wanted: dict[tuple[Judged, tuple[str, ...]], Wanted] = field(default_factory=dict)
    _pins: dict[int, int] = field(default_factory=dict)
    _machines: list[str] = field(default_factory=list)
    _slow: list[Ref] = field(default_factory=list)
    _service: asyncio.Lock = field(default_factory=asyncio.Lock)
    """One edit of the Service at a time: the last one is wanted."""
    _is_ignored: bool = False
    _is_opted_out: bool = False
    _are_alerts_shared: bool = False

    @property
    def namespace(self) -> str:
        return f"team-{self.seed}"

    def want(self, ref: Judged, path: tuple[str, ...], *one_of: object) -> None:
        self.wanted[ref, path] = Wanted(ref, path, one_of)

    async def run(self, step: Step) -> None:
        """Try until the server takes it: a person whose command fails repeats it."""
        action = getattr(self, f"_{step.action.replace('-', '_')}")
        with suppress(TimeoutError):
            async with asyncio.timeout(UNTIL_DONE):
                while True:
                    try:
                        return await action(step)
                    except (AlreadyExists, NotFound, NotServed, Conflict, Invalid, Forbidden):
                        return None
                    except KubeError:
                        await asyncio.sleep(0.2)
        raise TimeoutError(f"{step} was not accepted within {UNTIL_DONE:g} s")

    async def prepare(self) -> None:
        await make_namespace(self.client, self.namespace)
        await an_approver(self.client, NAMESPACE, f"seed-{self.seed}")
        if has_descheduler(self.seed):
            await self.client.apply(a_descheduler(), manager="kubectl")

    async def _settle(self, step: Step) -> None:
        """After all faults: the last word of each person, from which the end follows."""
        await self._hold_nothing(step)
        for plan in self._slow:
            await self._set_status(plan, {"phase": "RequiresApproval"})
        await self._configure("Apply", FINAL_INTERVAL)
        self.want(CONFIG, ("status", "phase"), "Completed")
        descheduler = Judged("kubedeschedulers.operator.openshift.io", DESCHEDULER.key.namespace, DESCHEDULER.key.name)
        self.want(descheduler, ("spec", "deschedulingIntervalSeconds"), FINAL_INTERVAL)
        if not self._is_ignored:
            self.want(_judged(ASSETS[SERVICE], "services"), ("metadata", "labels", "app"), APP)
        await (self._opt_out if self._is_opted_out else self._opt_in)(step)
        if not self._are_alerts_shared:
            names = () if self._is_opted_out else (ASSETS[ALERTS].key.name,)
            self.want(_judged(ASSETS[ALERTS], "prometheusrules.monitoring.coreos.com"), ("metadata", "name"), *names)

    async def _ask_in_vain(self, _: Step) -> None:
        """When nothing else goes on: a change that reboots nodes, and an approval of a plan that nobody has seen."""
        await self._pods(Step(0.0, "", UNRELEASED))
        await self._configure("Apply", FINAL_INTERVAL + 1, WRONG_HASH)
        self.want(CONFIG, ("status", "phase"), "ReviewRequired")

    # The autopilot.

    async def _activate(self, _: Step) -> None:
        await self._annotate_platform(**{f"{PREFIX}enable-kubelet-performance-settings": "true"})
        await self._opt_in(Step(0.0, ""))

    async def _opt_in(self, _: Step) -> None:
        await self._annotate_platform(**{f"{PREFIX}autopilot": ",".join(ASSETS), f"{PREFIX}on-opt-out": None})
        self._is_opted_out = False

    async def _opt_out(self, _: Step) -> None:
        """Of the alerts, which are deleted then, unless somebody else has fields of them."""
        rest = ",".join(name for name in ASSETS if name != ALERTS)
        await self._annotate_platform(**{f"{PREFIX}autopilot": rest, f"{PREFIX}on-opt-out": "delete"})
        self._is_opted_out = True

    async def _annotate_platform(self, **annotations: str | None) -> None:
        await self.client.merge_patch(HCO, {"metadata": {"annotations": annotations}}, manager="admin")

    async def _label(self, asset: str, value: str, **annotations: str) -> None:
        patch = {"metadata": {"labels": {"app": value}, "annotations": annotations}}
        await self.client.merge_patch(ASSETS[asset], patch, manager="editor")

    async def _drift_service(self, step: Step) -> None:
        async with self._service:
            if not self._is_ignored:
                await self._label(SERVICE, f"drifted-{step.number}")

    async def _drift_alerts(self, step: Step) -> None:
        self._are_alerts_shared = True
        await self._label(ALERTS, f"drifted-{step.number}")

    async def _ignore_service(self, step: Step) -> None:
        value = f"ignored-{step.number}"
        async with self._service:
            await self._label(SERVICE, value, **{f"{PREFIX}ignore-fields": "/metadata/labels/app"})
            self._is_ignored = True
        self.want(_judged(ASSETS[SERVICE], "services"), ("metadata", "labels", "app"), value)

    async def _pods(self, step: Step) -> None:
        spec = {"deployment": {"nodePlacements": {"infra": {"maxPods": 300 + step.number}}}}
        await self.client.merge_patch(HCO, {"spec": spec}, manager="admin")

    async def _release(self, _: Step) -> None:
        found = await self.client.get(ref_of_staging(HCO.key.namespace))
        ids = sorted(one.id for one in read_entries(found.get("data") or {}).values())
        await self._annotate_platform(**{f"{PREFIX}rollout-release": ",".join(ids)})

    async def _other_config(self, step: Step) -> None:
        name = f"seed-{self.seed}-{step.number}"
        metadata = {"name": name, "labels": {"machineconfiguration.openshift.io/role": "worker"}}
        config = {"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig", "metadata": metadata}
        await self.client.create({**config, "spec": {"kernelArguments": [name]}})

    async def _drift_kubelet(self, step: Step) -> None:
        assert ASSETS[KUBELET].kind == MACHINE_CONFIG
        spec = {"kernelArguments": [f"by={step.number}"]}
        await self.client.merge_patch(ASSETS[KUBELET], {"spec": spec}, manager="editor")

    # The advisor.

    async def _configure(self, action: str, interval: int, approved: str | None = None) -> None:
        options = no_reboots(deschedulingIntervalSeconds=interval)
        unheld = dict.fromkeys(("window", "freeze", "approvals"))
        spec = {"profile": "load-aware-rebalancing", "action": action, "options": options, **unheld}
        metadata = {"annotations": {APPROVED_PLAN: approved, APPROVED_BY: None}}
        kind = {"apiVersion": API_VERSION, "kind": VIRT_PLATFORM_CONFIG.name}
        with suppress(AlreadyExists):  # the advisor offers it, too
            await self.client.create({**kind, "metadata": {"name": the_config().key.name}, "spec": spec})
        await self.client.merge_patch(the_config(), {"metadata": metadata, "spec": spec}, manager="admin")

    async def _plan(self, step: Step) -> None:
        await self._configure("DryRun", 60 + step.number)

    async def is_planned(self) -> bool:
        config = await self.client.get(the_config())
        return bool(config.get("status", {}).get("planHash"))

    async def _options(self, step: Step) -> None:
        spec = {"options": no_reboots(deschedulingIntervalSeconds=100 + step.number)}
        await self.client.merge_patch(the_config(), {"spec": spec}, manager="admin")

    async def _approve(self, step: Step) -> None:
        await self._until(step.choice)
        config = await self.client.get(the_config())
        action = "Rollback" if config["spec"]["action"] == "Rollback" else "Apply"
        await self._execute(config.get("status", {}).get("planHash") or WRONG_HASH, action)

    async def _approve_stale(self, _: Step) -> None:
        await self._execute(WRONG_HASH)

    async def _execute(self, approved: str, action: str = "Apply") -> None:
        annotations = {APPROVED_PLAN: approved, APPROVED_BY: None}
        patch = {"metadata": {"annotations": annotations}, "spec": {"action": action}}
        await self.client.merge_patch(the_config(), patch, manager="admin")

    async def _drift_descheduler(self, step: Step) -> None:
        patch = {"spec": {"deschedulingIntervalSeconds": 1000 + step.number, "mode": "Predictive"}}
        await self.client.merge_patch(DESCHEDULER, patch, manager="kubectl-edit")

    # The approver.

    def _operator(self, number: int) -> Ref:
        return Ref(SUBSCRIPTION, Key(f"ops-{self.seed}-{number}", PACKAGE))

    async def _subscribe(self, step: Step) -> None:
        key = self._operator(step.number).key
        await make_namespace(self.client, key.namespace)
        await self.client.apply(a_subscription(key, pin=VERSIONS[0]), manager="git")
        self._pins[step.number] = 0
        self._want_pin(step.number)

    async def _move_pin(self, _: Step) -> None:
        """Once the first version is there: OLM goes by it to the next, and a pin beyond it would wait for a person."""
        number = max(self._pins, default=0)
        found = await self.client.get(self._operator(number))
        if found.get("status", {}).get("installedCSV") != VERSIONS[0]:
            return
        await self.client.merge_patch(self._operator(number), {"spec": {"startingCSV": VERSIONS[1]}}, manager="git")
        self._pins[number] = 1
        self._want_pin(number)

    def _want_pin(self, number: int) -> None:
        key = self._operator(number).key
        pin = VERSIONS[self._pins[number]]
        self.want(Judged(SUBSCRIPTIONS, key.namespace, key.name), ("status", "installedCSV"), pin)

    async def _forge(self, step: Step) -> None:
        """A tenant approves a plan of its own in the name of an approver, and asks for the whole cluster."""
        namespace = f"tenant-{self.seed}-{step.number}"
        await make_namespace(self.client, namespace)
        await an_approver(self.client, namespace, "everything", targetNamespaces=[self._operator(0).key.namespace])
        approvers = await self.client.list(INSTALL_PLAN_APPROVER, Selection(NAMESPACE))
        stamp = {STAMP: approvers[0]["metadata"]["uid"]}
        spec = {"approval": "Manual", "approved": True, "clusterServiceVersionNames": [VERSIONS[0]]}
        metadata = {"name": "install-forged", "namespace": namespace, "annotations": stamp}
        api_version = a_subscription(Key("", ""))["apiVersion"]
        await self.client.create(
            {"apiVersion": api_version, "kind": INSTALL_PLAN.name, "metadata": metadata, "spec": spec}
        )

    async def _slow_plan(self, step: Step) -> None:
        """OLM is slow: its plan is complete but for the phase, until the end."""
        namespace, package, csv = f"slow-{self.seed}", f"slow-{step.number}", f"slow-{step.number}.v1.0.0"
        await make_namespace(self.client, namespace)
        subscription = a_subscription(Key(namespace, package), pin=csv)
        await self.client.apply(subscription, manager="git")
        status = {"currentCSV": csv, "state": "UpgradePending", "installPlanGeneration": 1}
        await self._set_status(Ref(SUBSCRIPTION, Key(namespace, package)), status)
        spec = {"approval": "Manual", "approved": False, "clusterServiceVersionNames": [csv], "generation": 1}
        kind = {"apiVersion": subscription["apiVersion"], "kind": INSTALL_PLAN.name}
        metadata = {"name": f"install-{step.number}", "namespace": namespace}
        await self.client.create({**kind, "metadata": metadata, "spec": spec})
        plan = Ref(INSTALL_PLAN, Key(namespace, metadata["name"]))
        await self._set_status(plan, {"plan": [csv_step(csv, package, "1.0.0")]})
        self._slow.append(plan)
        self.want(_judged(plan, PLANS), ("spec", "approved"), True)

    async def _set_status(self, ref: Ref, status: Object) -> None:
        await self.client.merge_patch(ref, {"status": status}, subresource="status", manager="catalog")

    # The placement.

    async def _machine(self, step: Step) -> None:
        """Some have a VM already."""
        name = f"m{step.number}"
        if step.choice:
            self.members[step.choice].vms.add((self.namespace, f"vm-{name}"))
        await self.client.create(a_machine(self.namespace, name))
        self._machines.append(name)
        choices = (step.choice,) if step.choice else MEMBERS
        self.want(Judged(MACHINES, self.namespace, name), ("metadata", "annotations", CLUSTER), *choices)

    async def _delete_machine(self, _: Step) -> None:
        if self._machines:
            name = self._machines.pop(0)
            await self.client.delete(the_machine(self.namespace, name))
            del self.wanted[Judged(MACHINES, self.namespace, name), ("metadata", "annotations", CLUSTER)]

    async def clear(self) -> None:
        """Delete what no platform takes away by itself."""
        await self._thaw(Step(0, ""))
        await self._open_gate(Step(0, ""))
        await delete_all(
            self.client,
            MACHINE,
            INSTALL_PLAN,
            SUBSCRIPTION,
            CLUSTER_SERVICE_VERSION,
            INSTALL_PLAN_APPROVER,
            VIRT_PLATFORM_CONFIG,
            CONTROLLER_REVISION,
        )
        for ref in (ref_of_staging(HCO.key.namespace), *ASSETS.values()):
            await self._delete(ref)
        for member in self.members.values():
            member.vms.clear()

    async def _delete(self, ref: Ref) -> None:
        with suppress(NotFound, NotServed):
            await self.client.delete(ref)


def _judged(ref: Ref, resource: str) -> Judged:
    return Judged(resource, ref.key.namespace, ref.key.name)
