"""`virt-steward status`: the state of each controller's objects on one page."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from virt_steward.cli import advisor_flags
from virt_steward.cli.arguments import ContextOption, KubeconfigOption, quiet_reader
from virt_steward.cli.output import Output, OutputOption, answer, table
from virt_steward.insight.status import collect_sections

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from virt_steward.insight.status import Section
    from virt_steward.objects.identity import Key


def status(
    *,
    hyperconverged: advisor_flags.HcoOption = advisor_flags.HCO,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Show profiles, assets, pending approvals and clusters.

    One section per controller, from the statuses on the cluster. Nothing is changed.
    """
    found = asyncio.run(_sections(advisor_flags.hco(hyperconverged), kubeconfig, context))
    answer(output, "\n".join(_lines(found)), {section.controller: _data(section) for section in found})


async def _sections(hco: Key, kubeconfig: str | None, context: str | None) -> tuple[Section, ...]:
    async with quiet_reader(kubeconfig, context) as reader:
        return await collect_sections(reader, hco)


def _lines(found: Iterable[Section]) -> Iterator[str]:
    for section in found:
        yield f"{section.controller}: {section.summary}"
        if section.rows:
            yield from (f"  {line}" for line in table(section.columns, section.rows))


def _data(section: Section) -> dict[str, Any]:
    rows = [dict(zip(section.columns, row, strict=True)) for row in section.rows]
    return {"summary": section.summary, "items": rows}
