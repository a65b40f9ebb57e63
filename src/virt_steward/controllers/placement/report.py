"""A KubevirtConfig's status: whether the cluster answers, whether our credentials are good, and what it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from virt_steward.apis.meta import Condition
from virt_steward.controllers.placement.fleet import ClusterReached, ClusterRejected
from virt_steward.controllers.placement.observation import Unreachable, UnusableCluster
from virt_steward.controllers.placement.observe import KubevirtConfigReport
from virt_steward.controllers.placement.verdicts import PlacementReason

if TYPE_CHECKING:
    from datetime import datetime

    from virt_steward.apis.meta import ConditionStatus
    from virt_steward.controllers.placement.observe import KubevirtConfig

Answer = ClusterReached | Unreachable | UnusableCluster

LONGEST_MESSAGE = 1024


def status_of(config: KubevirtConfig, answer: Answer, machines: int, now: datetime) -> KubevirtConfigReport:
    conditions = (_reachable(answer), _credentials(answer))
    return KubevirtConfigReport(
        phase=_phase(answer),
        version=answer.version if isinstance(answer, ClusterReached) else config.status.version,
        machines=machines,
        observed_generation=config.metadata.generation,
        conditions=tuple(
            Condition(
                type=type_,
                status=status,
                reason=reason,
                message=message[:LONGEST_MESSAGE],
                last_transition_time=now,
                observed_generation=config.metadata.generation,
            ).carrying_on(config.status.conditions)
            for type_, (status, reason, message) in zip(("Reachable", "CredentialsValid"), conditions, strict=True)
        ),
    )


def _phase(answer: Answer) -> str:
    match answer:
        case ClusterReached():
            return "Ready"
        case UnusableCluster() | ClusterRejected():
            return "CredentialsInvalid"
        case _:
            return "Unreachable"


def _reachable(answer: Answer) -> tuple[ConditionStatus, str, str]:
    match answer:
        case ClusterReached() | ClusterRejected():
            return "True", "Answers", ""
        case UnusableCluster():
            return "Unknown", "NotAsked", "without credentials nobody can ask"
        case Unreachable(because, PlacementReason.REFUSED):
            return "False", "Refuses", because
        case _:
            return "False", "NoAnswer", answer.because


def _credentials(answer: Answer) -> tuple[ConditionStatus, str, str]:
    match answer:
        case ClusterReached():
            return "True", "Accepted", ""
        case UnusableCluster(reason, because):
            return "False", str(reason), because
        case ClusterRejected(because, reason):
            return "False", str(reason), because
        case Unreachable(reason=PlacementReason.REFUSED):
            return "Unknown", "Refuses", "the cluster refuses the question"
        case _:
            return "Unknown", "NoAnswer", "the cluster does not answer"
