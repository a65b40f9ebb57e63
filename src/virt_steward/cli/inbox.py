"""`virt-steward inbox`: what waits for a person, of all four controllers."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import typer

from virt_steward.cli import advisor_flags, approver_flags, autopilot_flags
from virt_steward.cli.arguments import ContextOption, KubeconfigOption, quiet_reader
from virt_steward.cli.output import Output, OutputOption, answer, say, wrapped
from virt_steward.controllers.autopilot.overrides.scope import Activation
from virt_steward.insight.inbox import InboxLine
from virt_steward.insight.inbox_survey import InboxOptions, read_inbox
from virt_steward.objects.document import JsonDocument
from virt_steward.runtime.access import NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from virt_steward.cli.arguments import ClusterChoice
    from virt_steward.insight.inbox_survey import WholeInbox

SOMETHING_WAITS, CANNOT_TELL = 2, 1
SHOWN = 100
"""Items in the text; JSON has all."""


class InboxDocument(JsonDocument, frozen=True):
    """The answer of `virt-steward inbox`."""

    count: int
    items: tuple[InboxLine, ...]
    """The most urgent first."""
    unknown: tuple[str, ...]
    """What could not be read, and why."""


def inbox(
    *,
    hyperconverged: advisor_flags.HcoOption = advisor_flags.HCO,
    activation: autopilot_flags.ActivationOption = Activation.OPT_IN,
    namespace: approver_flags.InstallationOption = NAMESPACE,
    policy_namespaces: approver_flags.PolicyNamespacesOption = None,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """List what waits for a person.

    The most urgent first, each with its reason and the command to decide. Nothing is changed. Exit code 0 if nothing
    waits, 2 if something does, 1 if that cannot be read.
    """
    options = InboxOptions(
        autopilot_flags.options(hyperconverged, activation, namespace),
        approver_flags.options(namespace, policy_namespaces),
    )
    found = asyncio.run(_read(options, (kubeconfig, context)))
    items = tuple(InboxLine.of(item) for item in found.items)
    if items or not found.unknown or output is Output.JSON:
        answer(output, "\n".join(_lines(items)), InboxDocument(len(items), items, found.unknown))
    for problem in found.unknown:
        say(f"virt-steward: cannot tell what waits for the {problem}")
    if items or found.unknown:
        raise typer.Exit(SOMETHING_WAITS if items else CANNOT_TELL)


async def _read(options: InboxOptions, cluster: ClusterChoice) -> WholeInbox:
    async with quiet_reader(*cluster) as reader:
        return await read_inbox(reader, options, datetime.now(UTC))


def _lines(items: tuple[InboxLine, ...]) -> Iterator[str]:
    if not items:
        yield "Nothing waits for a person"
        return
    for item in items[:SHOWN]:
        yield from wrapped(f"{item.tag}: {item.message}", hanging="  ")
        yield from wrapped(item.why, "  ")
        yield f"  {item.command}"
    if len(items) > SHOWN:
        yield f"and {len(items) - SHOWN} more; -o json lists all"
