"""A KubevirtConfig's status: whether the cluster answers, whether our credentials are good, and what it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from virt_steward.apis.meta import Condition
from virt_steward.controllers.placement.fleet import Reached, Rejected
from virt_steward.controllers.placement.observe import Told
from virt_steward.controllers.placement.seen import Silent, Unusable
from virt_steward.controllers.placement.verdicts import Reason

if TYPE_CHECKING:
    from datetime import datetime

    from virt_steward.controllers.placement.observe import Config
    from virt_steward.objects.conditions import Status

Answer = Reached | Silent | Unusable

LONGEST_MESSAGE = 1024


def status_of(config: Config, answer: Answer, machines: int, now: datetime) -> Told:
    conditions = (_reachable(answer), _credentials(answer))
    return Told(
        phase=_phase(answer),
        version=answer.version if isinstance(answer, Reached) else config.status.version,
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
        case Reached():
            return "Ready"
        case Unusable() | Rejected():
            return "CredentialsInvalid"
        case _:
            return "Unreachable"


def _reachable(answer: Answer) -> tuple[Status, str, str]:
    match answer:
        case Reached() | Rejected():
            return "True", "Answers", ""
        case Unusable():
            return "Unknown", "NotAsked", "without credentials nobody can ask"
        case Silent(because, Reason.REFUSED):
            return "False", "Refuses", because
        case _:
            return "False", "NoAnswer", answer.because


def _credentials(answer: Answer) -> tuple[Status, str, str]:
    match answer:
        case Reached():
            return "True", "Accepted", ""
        case Unusable(reason, because):
            return "False", str(reason), because
        case Rejected(because, reason):
            return "False", str(reason), because
        case Silent(reason=Reason.REFUSED):
            return "Unknown", "Refuses", "the cluster refuses the question"
        case _:
            return "Unknown", "NoAnswer", "the cluster does not answer"
