"""`virt-steward explain asset`: asks why an asset is as it is, and prints the answer."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from virt_steward.app import connected
from virt_steward.catalog.load import load
from virt_steward.controllers.autopilot.options import AutopilotOptions, related_images
from virt_steward.insight.assets.explain import explain, find_asset, gather_evidence
from virt_steward.insight.assets.survey import survey
from virt_steward.kube.client import Reader
from virt_steward.kube.errors import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from virt_steward.insight.assets.explain import AssetExplanation, LiveObject
    from virt_steward.objects.checks import CheckResult
    from virt_steward.objects.identity import Key

MARKS = {"pass": "✓", "fail": "✗", "not reached": "-"}


async def asked(name: str, hco: Key, kubeconfig: str | None, context: str | None) -> AssetExplanation:
    catalog = load()
    asset = find_asset(catalog, name)  # before connecting to a cluster
    options = AutopilotOptions(hco, related_images(os.environ))
    async with connected(kubeconfig, context) as client:
        found = await survey(Reader(client.connection, client.discovery), catalog, options, datetime.now(UTC))
        return explain(found, name, await gather_evidence(client, found, asset))


def lines(found: AssetExplanation) -> Iterator[str]:
    yield f"Asset {found.asset}, {found.object}: {found.state}: {found.because}"
    yield f"  {found.summary}"
    yield from (f"  {_check(check)}" for check in found.steps)
    if found.overrides:
        until = f", until {found.until}" if found.until else ""
        yield f"\nAnnotations on the object that are in force{until}:"
        yield from (f"  {name}: {one_line(value)}" for name, value in sorted(found.overrides.items()))
    if found.remarks:
        yield "\nRemarks:"
        yield from (f"  {remark}" for remark in found.remarks)
    if found.governed:
        yield f"\nGoverned by the advisor: {', '.join(found.governed)}"
    if found.told:
        yield "\nRecent events:"
        yield from (f"  {one_line(one)}" for one in found.told)
    yield f"\n{_live(found.live)}"


def _check(check: CheckResult) -> str:
    reason = f": {check.reason}" if check.reason else ""
    if check.result == "not reached":
        reason = ": not reached"
    return f"{MARKS[check.result]} {check.title}{reason}{'. Stopped here' if check.decided else ''}"


def _live(live: LiveObject | None) -> str:
    if live is None:
        return "The object does not exist."
    facts = ["created by the autopilot" if live.made_by_us else "not known to be created by the autopilot"]
    facts += [f"also managed by {', '.join(live.others)}"] if live.others else []
    facts += [f"paused at {live.paused_at}"] if live.paused_at else []
    return f"The object exists: {'; '.join(facts)}."
