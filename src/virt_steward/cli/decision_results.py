"""How commands make a decision about several objects, and print what came of each."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import typer

from virt_steward.cli.arguments import quiet_client
from virt_steward.cli.output import Output, answer, say
from virt_steward.decisions.installplans import InstallPlanApproved
from virt_steward.decisions.outcomes import Decided
from virt_steward.decisions.plans import PlanApproved
from virt_steward.decisions.signatures import sign
from virt_steward.insight.assets.staged import StagedAsset
from virt_steward.kube.errors import KubeError
from virt_steward.objects.document import JsonDocument

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from virt_steward.cli.arguments import ClusterChoice
    from virt_steward.decisions.outcomes import Outcome
    from virt_steward.decisions.signatures import Signature
    from virt_steward.kube.client import Client


@dataclass(frozen=True, slots=True)
class DecisionResult:
    """What came of a decision about one object."""

    subject: str
    decided: bool
    message: str
    by: str = ""
    """As the API server knows them; empty if nothing was decided."""
    comment: str = ""
    details: PlanApproved | InstallPlanApproved | StagedAsset | None = None
    """What else is known of it, such as the plan that was approved."""


class DecisionLine(JsonDocument, frozen=True):
    """The same, for programs."""

    subject: str
    decided: bool
    message: str
    by: str
    comment: str
    plan: PlanApproved | None = None
    """The plan of a profile that was approved."""
    install_plan: InstallPlanApproved | None = None
    """The InstallPlan that was approved."""
    released: StagedAsset | None = None
    """The staged change that was released."""

    @classmethod
    def of(cls, result: DecisionResult) -> DecisionLine:
        one = result.details
        return cls(
            result.subject,
            result.decided,
            result.message,
            result.by,
            result.comment,
            one if isinstance(one, PlanApproved) else None,
            one if isinstance(one, InstallPlanApproved) else None,
            one if isinstance(one, StagedAsset) else None,
        )


class DecisionsDocument(JsonDocument, frozen=True):
    """The answer of all commands that decide."""

    decided_count: int
    refused_count: int
    results: tuple[DecisionLine, ...]


async def decide_all(
    names: Iterable[str],
    decide: Callable[[Client, str, Signature], Awaitable[Outcome]],
    comment: str,
    cluster: ClusterChoice,
) -> tuple[DecisionResult, ...]:
    """One after the other, under one signature: what one object refuses does not keep the others from being decided."""
    async with quiet_client(*cluster) as client:
        signature = await sign(client, comment, datetime.now(UTC))
        return tuple([await result_of(name, signature, decide(client, name, signature)) for name in names])


async def result_of(name: str, signature: Signature, deciding: Awaitable[Outcome]) -> DecisionResult:
    try:
        outcome = await deciding
    except KubeError as error:
        return DecisionResult(name, decided=False, message=str(error))
    if isinstance(outcome, Decided):
        return DecisionResult(name, True, outcome.message, signature.user, signature.comment)
    return DecisionResult(name, decided=False, message=outcome.reason)


def answer_decisions(output: Output, results: Sequence[DecisionResult]) -> None:
    """Print what was decided; what was refused goes to stderr, and makes the exit code 1."""
    done = "\n".join(f"{one.subject}: {one.message}" for one in results if one.decided)
    if done or output is Output.JSON:
        decided = sum(one.decided for one in results)
        lines = tuple(DecisionLine.of(one) for one in results)
        answer(output, done, DecisionsDocument(decided, len(results) - decided, lines))
    for one in results:
        if not one.decided:
            say(f"virt-steward: {one.subject}: {one.message}")
    if not all(one.decided for one in results):
        raise typer.Exit(1)
