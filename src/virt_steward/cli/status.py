"""`virt-steward status`: the state of each controller's objects on one page."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any

import msgspec

from virt_steward.cli import advisor_flags, approver_flags, autopilot_flags
from virt_steward.cli.arguments import ContextOption, KubeconfigOption, quiet_reader
from virt_steward.cli.output import Output, OutputOption, answer, table, wrapped
from virt_steward.controllers.autopilot.overrides.scope import Activation
from virt_steward.insight.assets.explain import LEFT_ALONE
from virt_steward.insight.status import collect_sections
from virt_steward.objects.wallclock import rfc3339
from virt_steward.runtime.access import NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from virt_steward.controllers.autopilot.options import AutopilotOptions
    from virt_steward.insight.status import Section


FOLDED = 3
"""So many rows with the same reason become one."""


def status(
    *,
    hyperconverged: advisor_flags.HcoOption = advisor_flags.HCO,
    activation: autopilot_flags.ActivationOption = Activation.OPT_IN,
    namespace: approver_flags.InstallationOption = NAMESPACE,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Show profiles, assets, pending approvals and clusters.

    One section per controller, from the statuses on the cluster, with the last decisions of people. Nothing is changed.
    """
    found = asyncio.run(_sections(autopilot_flags.options(hyperconverged, activation, namespace), kubeconfig, context))
    answer(output, "\n".join(_lines(found)), {section.controller: _data(section) for section in found})


async def _sections(options: AutopilotOptions, kubeconfig: str | None, context: str | None) -> tuple[Section, ...]:
    async with quiet_reader(kubeconfig, context) as reader:
        return await collect_sections(reader, options)


def _lines(found: Iterable[Section]) -> Iterator[str]:
    for section in found:
        yield f"{section.controller}: {section.summary}"
        if section.rows:
            yield from (f"  {line}" for line in table(section.columns, fold_left_alone(section.rows)))
        for subject, record in section.decisions:
            yield from wrapped(f"{rfc3339(record.at)} {subject}: {record}", "  ", "    ")


def fold_left_alone(rows: Iterable[tuple[str, ...]]) -> Iterator[tuple[str, ...]]:
    """Join assets that are left alone for the same reason: a hundred lines would hide the one that matters."""
    found = tuple(rows)
    counts = Counter(row[1:] for row in found if row[1] == LEFT_ALONE)
    yield from (row for row in found if counts[row[1:]] < FOLDED)
    yield from ((f"{count} assets", *rest) for rest, count in counts.items() if count >= FOLDED)


def _data(section: Section) -> dict[str, Any]:
    rows = [dict(zip(section.columns, row, strict=True)) for row in section.rows]
    decisions = [{"object": subject, **msgspec.to_builtins(record)} for subject, record in section.decisions]
    return {"summary": section.summary, "items": rows, "decisions": decisions}
