"""What a test does with OLM in one namespace: subscribe, read, wait, approve by hand."""

from dataclasses import dataclass
from typing import Any, Literal, Self

from tests.eventually import soon
from tests.installplans import INSTALL_PLAN
from tests.olm.catalog import CHANNEL, Operator
from tests.olm.lifecycle_manager import CATALOG, GROUP
from virt_steward.kube.client import Client, Selection
from virt_steward.kube.errors import NotFound
from virt_steward.objects.identity import Key, Kind, Ref, ref_of

SUBSCRIPTION = Kind(GROUP, "Subscription", "subscriptions")
CSV = Kind(GROUP, "ClusterServiceVersion", "clusterserviceversions")
PATIENCE = 60  # OLM allows itself five requests a second, for all namespaces together

Object = dict[str, Any]
Approval = Literal["Manual", "Automatic"]


@dataclass(frozen=True, slots=True)
class OperatorNamespace:
    """A namespace with an OperatorGroup, so that OLM installs operators in it."""

    client: Client
    name: str

    @classmethod
    async def create(cls, client: Client, name: str, *, everywhere: bool = False) -> Self:
        """Operators in it look after it, or after all namespaces."""
        await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        await client.create(
            {
                "apiVersion": f"{GROUP}/v1",
                "kind": "OperatorGroup",
                "metadata": {"name": "operators", "namespace": name},
                "spec": {} if everywhere else {"targetNamespaces": [name]},
            }
        )
        return cls(client, name)

    async def subscribe(self, operator: Operator, *, pin: str = "", approval: Approval = "Manual") -> Object:
        """As a person would; `pin` is a version."""
        return await self.client.create(
            {
                "apiVersion": f"{GROUP}/v1alpha1",
                "kind": SUBSCRIPTION.name,
                "metadata": {"name": operator.package, "namespace": self.name},
                "spec": {
                    "name": operator.package,
                    "channel": CHANNEL,
                    "source": CATALOG.key.name,
                    "sourceNamespace": CATALOG.key.namespace,
                    "installPlanApproval": approval,
                    **({"startingCSV": operator.csv(pin)} if pin else {}),
                },
            }
        )

    async def move_pin(self, operator: Operator, version: str) -> Object:
        """Of a Subscription that a person made."""
        return await self.client.merge_patch(
            Ref(SUBSCRIPTION, Key(self.name, operator.package)), {"spec": {"startingCSV": operator.csv(version)}}
        )

    async def subscriptions(self) -> list[Object]:
        return await self.client.list(SUBSCRIPTION, Selection(self.name))

    async def plans(self) -> list[Object]:
        """The InstallPlans, oldest first."""
        plans = await self.client.list(INSTALL_PLAN, Selection(self.name))
        return sorted(plans, key=lambda plan: int(plan["spec"]["generation"]))

    async def waiting_plans(self, *csvs: str) -> list[Object]:
        """Those in RequiresApproval that install exactly these, in whichever order."""
        return [
            plan
            for plan in await self.plans()
            if plan.get("status", {}).get("phase") == "RequiresApproval"
            and sorted(plan["spec"]["clusterServiceVersionNames"]) == sorted(csvs)
        ]

    async def phase(self, csv: str) -> str:
        """How far a ClusterServiceVersion is; empty if there is none, or nobody has looked at it yet."""
        try:
            found = await self.client.get(Ref(CSV, Key(self.name, csv)))
        except NotFound:
            return ""
        return str(found.get("status", {}).get("phase", ""))

    async def wait_for_plan(self, *csvs: str, within: float = PATIENCE) -> Object:
        """Answer the newest plan that waits for approval of exactly these."""

        async def is_there() -> bool:
            return bool(await self.waiting_plans(*csvs))

        if not await soon(is_there, within=within):
            raise TimeoutError(f"no plan for {', '.join(csvs)} after {within} s among {await self.plans()}")
        return (await self.waiting_plans(*csvs))[-1]

    async def wait_until_installed(self, *csvs: str, within: float = PATIENCE) -> None:
        async def are_installed() -> bool:
            return all([await self.phase(csv) == "Succeeded" for csv in csvs])

        if not await soon(are_installed, within=within):
            phases = {csv: await self.phase(csv) for csv in csvs}
            raise TimeoutError(f"not installed after {within} s: {phases}")

    async def approve(self, plan: Object) -> Object:
        """As a person would: whatever has changed since they looked."""
        return await self.client.merge_patch(ref_of(plan), {"spec": {"approved": True}})

    async def install(self, operator: Operator, version: str) -> None:
        """Subscribe, pinned, and approve by hand."""
        await self.subscribe(operator, pin=version)
        await self.approve(await self.wait_for_plan(operator.csv(version)))
        await self.wait_until_installed(operator.csv(version))
