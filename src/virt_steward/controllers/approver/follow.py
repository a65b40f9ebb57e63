"""Watches an approved plan until its operators are installed, or one of them has failed."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from virt_steward.controllers.approver.olm import CLUSTER_SERVICE_VERSION, INSTALL_PLAN
from virt_steward.kube.client import Selection
from virt_steward.kube.watch import snapshots
from virt_steward.objects.meta import Meta

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from virt_steward.kube.client import Reader
    from virt_steward.objects.identity import Key, Kind

LASTING = 10.0
"""Seconds after which a failed operator is not expected to recover by itself."""


@dataclass(frozen=True, slots=True)
class InstallSucceeded:
    """Every operator of the plan is installed."""


@dataclass(frozen=True, slots=True)
class InstallFailed:
    """OLM gave up on the plan, or on one of its operators."""

    why: str
    may_recover: bool = False
    """An operator may fail for a moment while OLM replaces another version of it."""


@dataclass(frozen=True, slots=True)
class InstallInProgress:
    """The installation is not over."""

    state: str


class CsvPhase(msgspec.Struct, frozen=True):
    phase: str = ""
    message: str = ""


class InstallStage(msgspec.Struct, frozen=True):
    """The phase of a plan or a ClusterServiceVersion."""

    metadata: Meta
    status: CsvPhase = CsvPhase()


def progress(
    plan: InstallStage | None, csvs: Mapping[str, InstallStage], wanted: Sequence[str]
) -> InstallSucceeded | InstallFailed | InstallInProgress:
    """The state of the installation."""
    if plan is None:
        return InstallFailed("the plan has been deleted")
    if plan.status.phase == "Failed":
        return InstallFailed(f"the plan failed{_message(plan)}")
    for name in wanted:
        if name in csvs and csvs[name].status.phase == "Failed":
            return InstallFailed(f"{name} failed{_message(csvs[name])}", may_recover=True)
    phases = {name: csvs[name].status.phase if name in csvs else "" for name in wanted}
    if plan.status.phase == "Complete" and set(phases.values()) <= {"Succeeded"}:
        return InstallSucceeded()
    operators = ", ".join(f"{name} {phase or 'not created yet'}" for name, phase in phases.items())
    return InstallInProgress(f"plan {plan.status.phase or 'without phase'}; {operators}")


async def follow(
    reader: Reader, plan: Key, csvs: Sequence[str], say: Callable[[str], None], *, lasting: float = LASTING
) -> InstallSucceeded | InstallFailed:
    """Watch until it is over, and `say` each change. Outages are waited out; a missing permission is raised."""
    plans = _Stages(reader, INSTALL_PLAN, Selection.one(plan))
    operators = _Stages(reader, CLUSTER_SERVICE_VERSION, Selection(plan.namespace))
    changed = asyncio.Event()
    try:
        async with asyncio.TaskGroup() as watches:
            tasks = [watches.create_task(stages.run(changed)) for stages in (plans, operators)]
            said = ""
            failing: InstallFailed | None = None
            while True:
                try:
                    async with asyncio.timeout(lasting if failing else None):
                        await changed.wait()
                except TimeoutError:
                    return _ended(tasks, failing or InstallSucceeded())
                changed.clear()
                if plans.known is None or operators.known is None:
                    continue
                reached = progress(plans.known.get(plan.name), operators.known, csvs)
                failing = reached if isinstance(reached, InstallFailed) and reached.may_recover else None
                match reached:
                    case InstallInProgress(state) if state != said:
                        said = state
                        say(state)
                    case InstallSucceeded() | InstallFailed(may_recover=False) as over:
                        return _ended(tasks, over)
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None


def _ended(
    tasks: Sequence[asyncio.Task[None]], over: InstallSucceeded | InstallFailed
) -> InstallSucceeded | InstallFailed:
    for task in tasks:
        task.cancel()
    return over


class _Stages:
    """The objects of one watch, by name."""

    def __init__(self, reader: Reader, kind: Kind, selection: Selection) -> None:
        self._snapshots = snapshots(reader, kind, InstallStage, selection)
        self.known: Mapping[str, InstallStage] | None = None

    async def run(self, changed: asyncio.Event) -> None:
        async with aclosing(self._snapshots) as changes:
            async for known in changes:
                self.known = {key.name: stage for key, stage in known.items()}
                changed.set()


def _message(stage: InstallStage) -> str:
    return f": {stage.status.message}" if stage.status.message else ""
