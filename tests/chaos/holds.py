"""How people hold changes back, and let them go on: freezes, windows, gates, approvals by several, opting out."""

from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime

import msgspec

from tests.controllers.advisor.rig import HCO, the_config
from tests.eventually import eventually
from virt_steward.apis.installplanapprover import INSTALL_PLAN_APPROVER
from virt_steward.apis.profiles import LOAD_AWARE
from virt_steward.controllers.approver.olm import INSTALL_PLAN, REQUIRED_APPROVALS
from virt_steward.decisions.installplans import ReviewedPlan, approve_manually
from virt_steward.decisions.plans import approve_plan
from virt_steward.kube.client import Client
from virt_steward.kube.errors import NotFound
from virt_steward.objects.corekinds import CONFIG_MAP
from virt_steward.objects.identity import Key, Ref
from virt_steward.runtime.access import NAMESPACE

PREFIX = "platform.kubevirt.io/"
FREEZES = {"": {}, "all": {"scope": "all"}, "placement": {"controllers": "placement,advisor"}}
"""By choice: the data of the ConfigMap besides its reason."""
FREEZE = Ref(CONFIG_MAP, Key(NAMESPACE, "virt-steward-freeze"))
GATE = Ref(CONFIG_MAP, Key(NAMESPACE, "closes-gate"))
CLOSES = {"chaos": "closes-gate"}
GATES = f"""\
gates:
  quiet:
    objects: {{apiVersion: v1, kind: ConfigMap, namespace: {NAMESPACE}, selector: chaos=closes-gate, absent: true}}
required: {{advisor: [quiet], approver: [quiet], autopilot: [quiet]}}
poll: 1s
"""
"""The file of --gates: one gate for all, which is closed while a ConfigMap exists."""
ALWAYS = {"schedule": "* * * * *", "duration": "1h"}
OPEN, CLOSED, FROZEN, PEOPLE, FREE = "open", "closed", "frozen", "people", ""
WAITS = 15.0
HELD = (OPEN, CLOSED, FROZEN, PEOPLE, FREE)
POLICIES = ("approve", OPEN, CLOSED, FREE)


class Step(msgspec.Struct, frozen=True, order=True):
    """Something that a person does."""

    at: float
    action: str
    number: int = 0
    choice: str = ""


def far_away() -> dict[str, str]:
    """A window that opens in half a year."""
    return {"schedule": f"0 0 1 {(datetime.now(UTC).month + 5) % 12 + 1} *", "duration": "1h"}


def window_of(choice: str) -> dict[str, str] | None:
    return {OPEN: ALWAYS, CLOSED: far_away()}.get(choice)


@dataclass(slots=True)
class Holds:
    """The steps that hold changes back. What holds the rest of the work back ends with the work."""

    client: Client
    seed: int
    people: tuple[Client, ...] = field(default=(), kw_only=True)
    """Two who may approve, besides the admin."""

    @property
    def _approver(self) -> Ref:
        return Ref(INSTALL_PLAN_APPROVER, Key(NAMESPACE, f"seed-{self.seed}"))

    async def _hold_nothing(self, step: Step) -> None:
        await self._thaw(step)
        await self._open_gate(step)
        await self._hold_approvals(Step(0.0, "", choice=FREE))

    async def _freeze(self, step: Step) -> None:
        await self._create(FREEZE, {"reason": "holidays", **FREEZES[step.choice]})

    async def _thaw(self, _: Step) -> None:
        with suppress(NotFound):
            await self.client.delete(FREEZE)

    async def _close_gate(self, _: Step) -> None:
        await self._create(GATE, {})

    async def _open_gate(self, _: Step) -> None:
        with suppress(NotFound):
            await self.client.delete(GATE)

    async def _create(self, ref: Ref, data: dict[str, str]) -> None:
        metadata = {"name": ref.key.name, "namespace": ref.key.namespace, "labels": CLOSES if ref == GATE else {}}
        await self.client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})

    async def _hold_plan(self, step: Step) -> None:
        spec = {
            "window": window_of(step.choice),
            "freeze": ALWAYS if step.choice == FROZEN else None,
            "approvals": {"required": 2} if step.choice == PEOPLE else None,
        }
        await self.client.merge_patch(the_config(), {"spec": spec}, manager="admin")

    async def _hold_approvals(self, step: Step) -> None:
        window = window_of(step.choice)
        policy = {
            "windows": [window] if window else None,
            "freezes": [ALWAYS] if step.choice == FROZEN else None,
            "approvals": {"required": 2} if step.choice == PEOPLE else None,
        }
        await self.client.merge_patch(self._approver, {"spec": {"policy": policy}}, manager="admin")

    async def _policy(self, step: Step) -> None:
        window = window_of(step.choice)
        annotations = {
            f"{PREFIX}rollout": "window" if window else step.choice or None,
            f"{PREFIX}rollout-window": f"{window['schedule']} {window['duration']}" if window else None,
        }
        await self.client.merge_patch(HCO, {"metadata": {"annotations": annotations}}, manager="admin")

    async def _until(self, state: str) -> None:
        """Wait for a plan in a state, such as `Rollback:ReviewRequired`; not for long, since it may never come."""

        async def is_reached() -> bool:
            status = (await self.client.get(the_config())).get("status", {})
            return f"{status.get('planAction')}:{status.get('phase')}" == state

        if state:
            await eventually(is_reached, within=WAITS)

    async def _roll_back(self, step: Step) -> None:
        await self._until(step.choice)
        await self.client.merge_patch(the_config(), {"spec": {"action": "Rollback"}}, manager="admin")

    async def _people_approve(self, step: Step) -> None:
        """One of two people, or both, with the command: the plan that they are shown, and InstallPlans that wait."""
        now = datetime.now(UTC)
        plans = await self.client.list(INSTALL_PLAN)
        waiting = [one["metadata"] for one in plans if REQUIRED_APPROVALS in one["metadata"].get("annotations", {})]
        for person in self.people if step.number % 3 else self.people[:1]:
            for plan in waiting:
                await approve_manually(
                    person, Key(plan["namespace"], plan["name"]), ReviewedPlan(None, None), "tested", now
                )
            config = await self.client.get(the_config())
            await approve_plan(person, LOAD_AWARE, config.get("status", {}).get("planHash", ""), "tested", now)
