"""`virt-steward status`: how things are, at a glance."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from virt_steward.app import connected
from virt_steward.cli.arguments import ContextOption, KubeconfigOption  # noqa: TC001 - typer reads annotations
from virt_steward.cli.output import Output, OutputOption, answer, table
from virt_steward.insight.status import collect_sections
from virt_steward.kube.client import Reader

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from virt_steward.insight.status import Section


def status(
    kubeconfig: KubeconfigOption = None, context: ContextOption = None, output: OutputOption = Output.TEXT
) -> None:
    """Say what each controller has done and what waits, as they have written it down."""
    found = asyncio.run(_asked(kubeconfig, context))
    answer(output, "\n".join(_lines(found)), {section.controller: _data(section) for section in found})


async def _asked(kubeconfig: str | None, context: str | None) -> tuple[Section, ...]:
    async with connected(kubeconfig, context) as client:
        return await collect_sections(Reader(client.connection, client.discovery))


def _lines(found: Iterable[Section]) -> Iterator[str]:
    for section in found:
        yield f"{section.controller}: {section.summary}"
        if section.rows:
            yield from (f"  {line}" for line in table(section.columns, section.rows))


def _data(section: Section) -> dict[str, Any]:
    rows = [dict(zip(section.columns, row, strict=True)) for row in section.rows]
    return {"summary": section.summary, "items": rows}
