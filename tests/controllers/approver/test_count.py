"""The count of approvals is exact, whatever is lost, refused, late or done twice."""

from collections.abc import Collection
from typing import Any

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from tests.controllers.approver.builders import NOON, V1, a_plan, an_approver, an_environment, fold
from virt_steward.controllers.approver.observation import Approver
from virt_steward.controllers.approver.olm import ApprovalStamp, InstallPlan
from virt_steward.controllers.approver.pending import StatusMemory
from virt_steward.objects.wallclock import rfc3339


class Server:
    """Plans and one approver, with one clock of versions for all, as in etcd."""

    def __init__(self) -> None:
        self.version = 1
        self.plans: dict[str, InstallPlan] = {}
        self.approver = an_approver()

    def put(self, plan: InstallPlan) -> None:
        metadata = msgspec.structs.replace(plan.metadata, resource_version=self._next())
        self.plans[plan.metadata.name] = msgspec.structs.replace(plan, metadata=metadata)

    def delete(self, name: str) -> None:
        del self.plans[name]
        self._next()

    def accepts(self, seen: Approver, status: Any) -> bool:
        """Write a status if the approver is still the one that was seen."""
        if seen.metadata.resource_version != self.approver.metadata.resource_version:
            return False
        metadata = msgspec.structs.replace(self.approver.metadata, resource_version=self._next())
        self.approver = msgspec.structs.replace(self.approver, metadata=metadata, status=status)
        return True

    def _next(self) -> str:
        self.version += 1
        return str(self.version)


NAMESPACES = ("bank", "shop")


class Process:
    """What one replica knows. Its watches are behind the server, each by its own time."""

    def __init__(self, server: Server, watched: tuple[str, ...] = ()) -> None:
        """Each namespace of those `watched` has a watch of its own; none means that one watch sees all."""
        self._server = server
        self._watched = watched
        self._memory = StatusMemory()
        self._versions: dict[str, int] = {}
        self.plans: dict[str, InstallPlan] = {}
        self.see_plans(watched or NAMESPACES)
        self.see_approver()

    def see_plans(self, namespaces: Collection[str]) -> None:
        namespaces = set(namespaces).intersection(self._watched) if self._watched else NAMESPACES
        others = {name: plan for name, plan in self.plans.items() if plan.metadata.namespace not in namespaces}
        seen = {name: plan for name, plan in self._server.plans.items() if plan.metadata.namespace in namespaces}
        self.plans = others | seen
        self._versions |= dict.fromkeys(namespaces if self._watched else [""], self._server.version)

    def see_approver(self) -> None:
        self.approver = self._server.approver

    def report(self, *, lost: bool) -> None:
        """Fold and write; a lost write reached the server or not, which is the server's business."""
        plans = list(self.plans.values())
        namespaces = self._memory.namespaces(self.approver, plans) if self._watched else {}
        outdated = self._memory.outdated(self.approver, self._versions)
        environment = an_environment(watched=self._watched, plan_namespaces=namespaces, outdated=outdated)
        status = fold(self.approver, plans, [], NOON, environment)
        self._memory.leaves(self.approver.metadata.key, status.counted_plans, outdated)
        if not lost:
            self._server.accepts(self.approver, status)


class Counting(RuleBasedStateMachine):
    """Two replicas, of which either may believe to lead; plans come, are approved, and go."""

    names = Bundle("names")
    replica = st.integers(0, 1)

    def __init__(self) -> None:
        super().__init__()
        self.server = Server()
        self.processes = [Process(self.server), Process(self.server)]
        self.created = 0
        self.approved = 0

    @rule(target=names, namespace=st.sampled_from(NAMESPACES))
    def a_plan_comes(self, namespace: str) -> str:
        self.created += 1
        name = f"install-{self.created}"
        self.server.put(a_plan(V1, name=name, namespace=namespace))
        return name

    @rule(name=names)
    def it_is_approved(self, name: str) -> None:
        plan = self.server.plans.get(name)
        if plan is None or plan.approved:
            return
        stamp = ApprovalStamp(self.server.approver.metadata.uid, rfc3339(NOON), "pinned")
        metadata = msgspec.structs.replace(plan.metadata, annotations=stamp)
        self.server.put(msgspec.structs.replace(plan, approved=True, metadata=metadata))
        self.approved += 1

    @rule(name=names)
    def somebody_edits_it(self, name: str) -> None:
        if plan := self.server.plans.get(name):
            self.server.put(plan)

    @rule(name=consumes(names))
    def it_is_deleted_once_counted(self, name: str) -> None:
        plan = self.server.plans.get(name)
        if plan and (not plan.approved or plan.metadata.uid in self.server.approver.status.counted_plans):
            self.server.delete(name)

    @rule(number=replica)
    def a_watch_of_plans_catches_up(self, number: int) -> None:
        self.processes[number].see_plans(NAMESPACES)

    @rule(number=replica)
    def a_watch_of_approvers_catches_up(self, number: int) -> None:
        self.processes[number].see_approver()

    @rule(number=replica, lost=st.booleans())
    def a_status_is_written(self, number: int, *, lost: bool) -> None:
        self.processes[number].report(lost=lost)

    @rule(number=replica)
    def a_process_is_killed_and_started_again(self, number: int) -> None:
        self.processes[number] = Process(self.server)

    @invariant()
    def no_plan_is_counted_twice(self) -> None:
        assert self.server.approver.status.approved_count <= self.approved

    def teardown(self) -> None:
        """Left alone, the count becomes exact."""
        process = Process(self.server)
        process.report(lost=False)
        assert self.server.approver.status.approved_count == self.approved


class CountingInSomeNamespaces(Counting):
    """Each process is told anew which namespaces to look at."""

    @rule(number=Counting.replica, namespace=st.sampled_from(NAMESPACES))
    def a_watch_of_one_namespace_catches_up(self, number: int, namespace: str) -> None:
        self.processes[number].see_plans([namespace])

    @rule(number=Counting.replica, watched=st.sampled_from([("bank",), ("shop",), NAMESPACES]))
    def a_process_is_started_again_on(self, number: int, watched: tuple[str, ...]) -> None:
        self.processes[number] = Process(self.server, watched)
        self.processes[number].report(lost=False)

    @rule(target=Counting.names, namespace=st.sampled_from(NAMESPACES))
    def a_plan_is_counted_by_one_that_sees_all(self, namespace: str) -> str:
        name = self.a_plan_comes(namespace)
        self.it_is_approved(name)
        Process(self.server).report(lost=False)
        return name

    @rule(number=Counting.replica, namespace=st.sampled_from(NAMESPACES))
    def a_plan_comes_in_sight_of_one_watch(self, number: int, namespace: str) -> None:
        """Newer than the status, it seems to tell that others of its namespace are gone."""
        self.a_plan_comes(namespace)
        self.processes[number].see_approver()
        self.processes[number].see_plans([namespace])
        self.processes[number].report(lost=False)


TestCounting = Counting.TestCase
TestCounting.settings = settings(max_examples=100, stateful_step_count=25, deadline=None)
TestCountingInSomeNamespaces = CountingInSomeNamespaces.TestCase
TestCountingInSomeNamespaces.settings = settings(max_examples=100, stateful_step_count=25, deadline=None)
