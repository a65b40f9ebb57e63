"""One namespace on a cluster with OLM: subscribe, read, wait, approve manually."""

from dataclasses import dataclass
from typing import Any, Literal, Self

from tests.eventually import eventually
from tests.installplans import INSTALL_PLAN
from tests.olm.catalog import CHANNEL, Operator
from tests.olm.lifecycle_manager import CATALOG, GROUP
from virt_steward.kube.client import Client, Selection
from virt_steward.kube.errors import NotFound
from virt_steward.objects.identity import Key, Kind, Ref, ref_of

SUBSCRIPTION = Kind(GROUP, "Subscription", "subscriptions")
CSV = Kind(GROUP, "ClusterServiceVersion", "clusterserviceversions")
TIMEOUT = 60  # OLM sends at most five requests per second for all namespaces together

Object = dict[str, Any]
Approval = Literal["Manual", "Automatic"]


@dataclass(frozen=True, slots=True)
class OperatorNamespace:
    """A namespace with an OperatorGroup, so that OLM installs operators in it."""

    client: Client
    name: str

    @classmethod
    async def create(cls, client: Client, name: str, *, everywhere: bool = False) -> Self:
        """Its operators manage this namespace, or all namespaces."""
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
        """Create a Subscription as an admin does; `pin` is a version."""
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
        """Change startingCSV of a Subscription."""
        return await self.client.merge_patch(
            Ref(SUBSCRIPTION, Key(self.name, operator.package)), {"spec": {"startingCSV": operator.csv(version)}}
        )

    async def subscriptions(self) -> list[Object]:
        return await self.client.list(SUBSCRIPTION, Selection(self.name))

    async def plans(self) -> list[Object]:
        """The InstallPlans, oldest first."""
        plans = await self.client.list(INSTALL_PLAN, Selection(self.name))
        return sorted(plans, key=lambda plan: int(plan["spec"]["generation"]))

    async def pending_plans(self, *csvs: str) -> list[Object]:
        """The InstallPlans in RequiresApproval with exactly these CSVs, in any order."""
        return [
            plan
            for plan in await self.plans()
            if plan.get("status", {}).get("phase") == "RequiresApproval"
            and sorted(plan["spec"]["clusterServiceVersionNames"]) == sorted(csvs)
        ]

    async def phase(self, csv: str) -> str:
        """The phase of a ClusterServiceVersion; empty if it does not exist or has no status yet."""
        try:
            found = await self.client.get(Ref(CSV, Key(self.name, csv)))
        except NotFound:
            return ""
        return str(found.get("status", {}).get("phase", ""))

    async def wait_for_plan(self, *csvs: str, within: float = TIMEOUT) -> Object:
        """Return the newest pending InstallPlan with exactly these CSVs."""

        async def exists() -> bool:
            return bool(await self.pending_plans(*csvs))

        if not await eventually(exists, within=within):
            raise TimeoutError(f"no plan for {', '.join(csvs)} after {within} s among {await self.plans()}")
        return (await self.pending_plans(*csvs))[-1]

    async def wait_until_installed(self, *csvs: str, within: float = TIMEOUT) -> None:
        async def are_installed() -> bool:
            return all([await self.phase(csv) == "Succeeded" for csv in csvs])

        if not await eventually(are_installed, within=within):
            phases = {csv: await self.phase(csv) for csv in csvs}
            raise TimeoutError(f"not installed after {within} s: {phases}")

    async def approve(self, plan: Object) -> Object:
        """Approve without a precondition, as an admin does."""
        return await self.client.merge_patch(ref_of(plan), {"spec": {"approved": True}})

    async def install(self, operator: Operator, version: str) -> None:
        """Subscribe with a pin, and approve manually."""
        await self.subscribe(operator, pin=version)
        await self.approve(await self.wait_for_plan(operator.csv(version)))
        await self.wait_until_installed(operator.csv(version))
