"""A control plane with a full audit log, accounts for two replicas of each controller, and their processes."""

import os
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.chaos.faults import CONTROLLERS, MEMBERS, REPLICAS, matches
from tests.chaos.gateway import ChaosGateway, a_chaos_gateway
from tests.chaos.holds import GATES
from tests.chaos.hook import CLOCK, MUTATION
from tests.chaos.members import ChaosMember, some_members
from tests.checker.facts import MemberAnswer, Replica
from tests.checker.history import AUDIT_POLICY
from tests.clients import a_client
from tests.fleet import a_secret
from tests.forkserver import HOOK, Fork, fork_server
from tests.grants import Account, an_account, grant_verbs
from tests.machines import a_config
from virt_steward.apis.crds import CRDS
from virt_steward.apis.virtplatformconfig import VIRT_PLATFORM_CONFIG
from virt_steward.controllers import definition
from virt_steward.controllers.advisor.admission import POLICIES as PLAN_POLICIES
from virt_steward.controllers.advisor.options import AdvisorOptions
from virt_steward.controllers.approver.admission import POLICIES as INSTALL_PLAN_POLICIES
from virt_steward.controllers.approver.olm import INSTALL_PLAN
from virt_steward.controllers.approver.options import ApproverOptions
from virt_steward.controllers.autopilot.options import OPT_OUT_DELETES, AutopilotOptions
from virt_steward.controllers.options import ControllerOptions
from virt_steward.holds.gate_settings import decode_gates
from virt_steward.kube.client import Client, Selection
from virt_steward.objects.identity import Key, Ref
from virt_steward.runtime.access import LEASE, NAMESPACE, Access, Grant, Installation
from virt_steward_demo.local.binaries import find_or_build
from virt_steward_demo.local.controlplane import ControlPlane
from virt_steward_demo.local.files import open_log
from virt_steward_demo.local.progress import ProgressPrinter
from virt_steward_demo.simulation.install import install, make_namespace
from virt_steward_demo.simulation.kinds import NAMES

LEASE_SECONDS = 4
OPTIONS = (
    f"--namespace={NAMESPACE}",
    "--log-format=json",
    f"--lease-duration={LEASE_SECONDS}",
    "--lease-retry=0.3",
    "--grace=1",
    "--placement-strategy=round-robin",
    "--cluster-timeout=1",
    "--cluster-retry=1",
    "--search-deadline=2",
    "--probe-interval=2",
    *(f"--{server}-bind-address=0" for server in ("metrics", "debug", "health-probe")),
)
NEEDED = (
    "HyperConverged",
    "InstallPlan",
    "Subscription",
    "ClusterServiceVersion",
    "KubeDescheduler",
    "KubeletConfig",
    "Machine",
    "MachineConfig",
    "MachineConfigPool",
    "PrometheusRule",
    "VirtualMachine",
    "VirtualMachineInstance",
    "VirtualMachineInstanceMigration",
)
GATES_FILE = "gates.yaml"
PEOPLE = ("first", "second")
"""Who approve beside the admin."""
RIGHTS = tuple(Grant(kind, ("get", "patch"), "to approve") for kind in (VIRT_PLATFORM_CONFIG, INSTALL_PLAN))
UNNEEDED = tuple(name for name in NAMES if name not in NEEDED)


@dataclass(slots=True)
class Process:
    """One replica of one controller, by way of the gateway; it can be started again and again."""

    name: str
    """Such as `a-advisor`: its account, too."""
    folder: Path
    kubeconfig: Path
    mutation: str = ""
    options: tuple[str, ...] = ()
    """Besides OPTIONS, or instead of those with the same name."""
    _fork: Fork | None = None

    @property
    def clock(self) -> Path:
        return self.folder / f"{self.name}.clock"

    @property
    def log(self) -> Path:
        return self.folder / f"{self.name}.log"

    def start(self) -> None:
        own = (f"--controllers={self.name.partition('-')[2]}", f"--kubeconfig={self.kubeconfig}")
        argv = ["run", *own, f"--gates={self.folder / GATES_FILE}", *OPTIONS, *self.options]
        env = {**os.environ, HOOK: "tests.chaos.hook:prepare", CLOCK: str(self.clock), MUTATION: self.mutation}
        self.set_clock(0)
        with Path(os.devnull).open("rb") as nothing, open_log(self.log) as output:
            self._fork = fork_server().start(argv, env, (nothing.fileno(), output.fileno(), output.fileno()))

    def set_clock(self, seconds: int) -> None:
        draft = self.clock.with_suffix(".new")
        draft.write_text(str(seconds))
        draft.replace(self.clock)

    @property
    def pid(self) -> int | None:
        return self._fork.pid if self._fork is not None else None

    @property
    def alive(self) -> bool:
        return self._fork is not None and self._fork.alive

    def signal(self, number: signal.Signals) -> None:
        if self._fork is not None and self._fork.alive:
            os.kill(self._fork.pid, number)

    def kill(self) -> None:
        if self._fork is not None:
            self._fork.kill()
            self._fork = None


@dataclass(slots=True)
class Site:
    """What outlives a seed."""

    control_plane: ControlPlane
    client: Client
    gateway: ChaosGateway
    accounts: dict[str, Account]
    members: dict[str, ChaosMember]
    journal: list[MemberAnswer]
    folder: Path
    people: tuple[Client, ...] = ()
    processes: dict[str, Process] = field(default_factory=dict)

    @property
    def replicas(self) -> dict[str, Replica]:
        """By user, for the checker."""
        split = {account.user: name.split("-") for name, account in self.accounts.items()}
        return {user: Replica(controller, replica) for user, (replica, controller) in split.items()}

    @property
    def audit_folder(self) -> Path:
        return self.control_plane.audit_log.parent

    def matching(self, target: str) -> list[Process]:
        return [one for name, one in self.processes.items() if matches(target, name)]

    def start_all(
        self, folder: Path, mutation: str = "", options: Callable[[str], tuple[str, ...]] = lambda _: ()
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / GATES_FILE).write_text(GATES)
        for name, account in self.accounts.items():
            path = folder / f"{name}.kubeconfig"
            account.write_kubeconfig(path, self.control_plane, self.gateway.server)
            self.processes[name] = Process(name, folder, path, mutation, options(name))
            self.processes[name].start()

    def kill_all(self) -> None:
        for process in self.processes.values():
            process.signal(signal.SIGCONT)
            process.kill()
        self.processes.clear()

    async def clear_leases(self) -> None:
        """Delete those of processes that were killed, so that the next need not wait."""
        for lease in await self.client.list(LEASE, Selection(NAMESPACE)):
            await self.client.delete(Ref(LEASE, Key(NAMESPACE, lease["metadata"]["name"])))


@contextmanager
def a_judged_control_plane(folder: Path) -> Iterator[ControlPlane]:
    """A control plane whose audit log has everything that the checker reads."""
    control_plane = ControlPlane(find_or_build(os.environ, ProgressPrinter()), folder)
    control_plane.audit_log.with_name("audit-policy.yaml").write_text(AUDIT_POLICY)
    with control_plane:
        yield control_plane


@asynccontextmanager
async def a_site(control_plane: ControlPlane, folder: Path) -> AsyncIterator[Site]:
    journal: list[MemberAnswer] = []
    members = {name: ChaosMember(name, journal) for name in MEMBERS}
    async with (
        a_client(control_plane) as client,
        a_chaos_gateway(control_plane) as gateway,
        some_members(control_plane, *members.values()),
        AsyncExitStack() as stack,
    ):
        await make_namespace(client, NAMESPACE)
        await install(client, *(crd.manifest() for crd in CRDS), *NEEDED)
        for policy in (*PLAN_POLICIES, *INSTALL_PLAN_POLICIES):  # without them, approvals by several count nothing
            await client.apply(policy, manager="tests", force=True)
        accounts = await _accounts(client)
        for name, account in accounts.items():
            gateway.admit(name, account.token)
        for member in members.values():
            await _join(client, control_plane, member)
        tokens = [await _token_of_person(client, name) for name in PEOPLE]
        people = [await stack.enter_async_context(a_client(control_plane, token)) for token in tokens]
        yield Site(control_plane, client, gateway, accounts, members, journal, folder, tuple(people))


async def _accounts(client: Client) -> dict[str, Account]:
    found, gates = {}, decode_gates(GATES.encode())
    options = ControllerOptions(
        advisor=AdvisorOptions(gates=gates),
        autopilot=AutopilotOptions(gates=gates),
        approver=ApproverOptions(gates=gates),
    )
    for controller in CONTROLLERS:
        access = definition(controller, options).access
        for replica in REPLICAS:
            installation = Installation(NAMESPACE, prefix=replica, secret_namespaces=(NAMESPACE,))
            if OPT_OUT_DELETES in access.extras:
                installation = replace(installation, extras=(OPT_OUT_DELETES,))
            found[f"{replica}-{controller}"] = await an_account(client, access, installation)
    return found


async def _token_of_person(client: Client, name: str) -> str:
    account = await an_account(client, Access(name, RIGHTS), Installation(NAMESPACE, prefix="person"))
    await grant_verbs(client, account.user, VIRT_PLATFORM_CONFIG, "approve")
    return account.token


async def _join(client: Client, control_plane: ControlPlane, member: ChaosMember) -> None:
    kubeconfig = control_plane.kubeconfig.read_text().replace(control_plane.server, member.server)
    for manifest in (a_secret(NAMESPACE, member.name, kubeconfig), a_config(member.name, Key(NAMESPACE, member.name))):
        await client.apply(manifest, manager="fleet", force=True)  # it has another port in each site of a control plane
