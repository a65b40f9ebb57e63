"""How commands make a decision about several objects, and print what came of each."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import typer

from virt_steward.cli.arguments import quiet_client
from virt_steward.cli.output import Output, answer, say
from virt_steward.decisions.outcomes import Decided
from virt_steward.decisions.signatures import sign
from virt_steward.kube.errors import KubeError

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
    details: Any = None
    """What else is known of it, such as the plan that was approved."""


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
        answer(output, done, results)
    for one in results:
        if not one.decided:
            say(f"virt-steward: {one.subject}: {one.message}")
    if not all(one.decided for one in results):
        raise typer.Exit(1)
