"""How the command line asks why an asset is as it is, and prints the answer."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from virt_steward.app import connected
from virt_steward.catalog.images import related_images
from virt_steward.catalog.load import load
from virt_steward.controllers.autopilot.options import AutopilotOptions
from virt_steward.insight.assets.evidence import evidence
from virt_steward.insight.assets.explain import checked, why
from virt_steward.insight.assets.survey import survey
from virt_steward.kube.client import Reader
from virt_steward.kube.errors import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from virt_steward.insight.assets.explain import AssetExplanation, LiveObject
    from virt_steward.objects.identity import Key


async def asked(name: str, hco: Key, kubeconfig: str | None, context: str | None) -> AssetExplanation:
    catalog = load()
    asset = checked(catalog, name)  # before a cluster is troubled
    options = AutopilotOptions(hco, related_images(os.environ))
    async with connected(kubeconfig, context) as client:
        seen = await survey(Reader(client.connection, client.discovery), catalog, options, datetime.now(UTC))
        return why(seen, name, await evidence(client, seen, asset))


def lines(found: AssetExplanation) -> Iterator[str]:
    yield f"Asset {found.asset}, {found.object}: {found.state}: {found.because}"
    yield f"  {found.summary}"
    for step in found.steps:
        because = f": {step.because}" if step.because else ""
        yield f"  {'[-]' if step.objects else '[+]'} {step.check}{because}"
    if found.overrides:
        until = f", until {found.until}" if found.until else ""
        yield f"\nAnnotations on the object that count{until}:"
        yield from (f"  {name}: {one_line(value)}" for name, value in sorted(found.overrides.items()))
    if found.remarks:
        yield "\nRemarks:"
        yield from (f"  {remark}" for remark in found.remarks)
    if found.governed:
        yield f"\nThe advisor governs: {', '.join(found.governed)}"
    if found.told:
        yield "\nTold lately:"
        yield from (f"  {one_line(one)}" for one in found.told)
    yield f"\n{_live(found.live)}"


def _live(live: LiveObject | None) -> str:
    if live is None:
        return "The object is not there."
    facts = ["made by the autopilot" if live.made_by_us else "not known to be made by the autopilot"]
    facts += [f"also managed by {', '.join(live.others)}"] if live.others else []
    facts += [f"paused at {live.paused_at}"] if live.paused_at else []
    return f"The object is there: {'; '.join(facts)}."
