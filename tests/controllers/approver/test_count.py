"""The count of approvals is exact, whatever is lost, refused, late or done twice."""

from typing import Any

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from tests.controllers.approver.builders import NOON, V1, a_plan, an_approver
from virt_steward.controllers.approver.olm import Plan, Stamp
from virt_steward.controllers.approver.report import fold
from virt_steward.controllers.approver.seen import Approver
from virt_steward.objects.wallclock import rfc3339


class Server:
    """Plans and one approver, with one clock of versions for all, as in etcd."""

    def __init__(self) -> None:
        self.version = 1
        self.plans: dict[str, Plan] = {}
        self.approver = an_approver()

    def put(self, plan: Plan) -> None:
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


class Process:
    """What one replica knows. Its two watches are behind the server, each by its own time."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.see_plans()
        self.see_approver()

    def see_plans(self) -> None:
        self.plans = dict(self._server.plans)

    def see_approver(self) -> None:
        self.approver = self._server.approver

    def report(self, *, lost: bool) -> None:
        """Fold and write; a lost write reached the server or not, which is the server's business."""
        status = fold(self.approver, list(self.plans.values()), [], NOON)
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

    @rule(target=names)
    def a_plan_comes(self) -> str:
        self.created += 1
        name = f"install-{self.created}"
        self.server.put(a_plan(V1, name=name))
        return name

    @rule(name=names)
    def it_is_approved(self, name: str) -> None:
        plan = self.server.plans.get(name)
        if plan is None or plan.approved:
            return
        stamp = Stamp(self.server.approver.metadata.uid, rfc3339(NOON), "pinned")
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
        self.processes[number].see_plans()

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


TestCounting = Counting.TestCase
TestCounting.settings = settings(max_examples=100, stateful_step_count=25)
