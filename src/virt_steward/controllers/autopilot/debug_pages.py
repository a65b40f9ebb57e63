"""The autopilot's debug pages: what it would apply now and what not, as its own caches and rules have it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import msgspec

from virt_steward.catalog.features import features
from virt_steward.catalog.printed import as_json, as_yaml
from virt_steward.catalog.report import AssetStatus
from virt_steward.controllers.autopilot.asset_report import EXCLUDED, lines
from virt_steward.controllers.autopilot.overrides.scope import Idle
from virt_steward.objects.yamltext import yaml_text
from virt_steward.runtime.debug import DebugReply

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from datetime import datetime

    from virt_steward.catalog.load import Tombstone
    from virt_steward.catalog.render import Renderer
    from virt_steward.catalog.report import AssetReport
    from virt_steward.controllers.autopilot.observe import AutopilotClusterView
    from virt_steward.runtime.clock import Clock
    from virt_steward.runtime.debug import DebugPage, DebugRequest

MEDIA = {"yaml": "application/x-yaml", "json": "application/json"}
IDLE = "X-Autopilot-Idle"
"""A header that says why nothing of all this is applied."""
NO_KIND = "CRD not installed"
_SHORT = {EXCLUDED: "Root exclusion", "Conditional template rendered empty": "Template rendered empty"}


def pages(view: AutopilotClusterView, renderer: Renderer, clock: Clock) -> Mapping[str, DebugPage]:
    """All of them, by path."""
    cabin = _Cabin(view, renderer, clock.utc)
    return {
        "/debug/render": _formatted(cabin.everything),
        "/debug/render/{asset:.*}": _formatted(cabin.one),
        "/debug/exclusions": _formatted(cabin.exclusions),
        "/debug/features": _formatted(cabin.features),
        "/debug/tombstones": _formatted(cabin.tombstones),
        "/debug/health": _health,
    }


class PageError(Exception):
    """A question without an answer: the status, and a sentence."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


@dataclass(frozen=True, slots=True)
class AssetsPage:
    """Assets, each with its object or why there is none."""

    lines: tuple[AssetReport, ...]
    idle: str
    """Why nothing of this is applied; empty while the autopilot is on."""

    def text(self, form: str) -> str:
        return as_json(self.lines) if form == "json" else as_yaml(self.lines)


@dataclass(frozen=True, slots=True)
class Records:
    """Anything else."""

    found: list[Any]
    idle: str = ""

    def text(self, form: str) -> str:
        if form == "json":
            return msgspec.json.format(msgspec.json.encode(self.found), indent=2).decode() + "\n"
        return yaml_text(self.found)


@dataclass(frozen=True, slots=True)
class _Cabin:
    """What the pages are made from."""

    view: AutopilotClusterView
    renderer: Renderer
    now: Callable[[], datetime]

    async def everything(self, asked: DebugRequest) -> AssetsPage:
        shown = self._rendition()
        if asked.query.get("show-excluded") != "true":
            wanted = (AssetStatus.INCLUDED, AssetStatus.ERROR)
            shown = replace(shown, lines=tuple(line for line in shown.lines if line.status in wanted))
        if asked.query.get("only-installed") == "true":
            shown = replace(shown, lines=tuple(line for line in shown.lines if line.reason != NO_KIND))
        return shown

    async def one(self, asked: DebugRequest) -> AssetsPage:
        name = asked.path["asset"]
        if not name:
            raise PageError(400, "which asset? /debug/features lists them")
        shown = self._rendition()
        found = tuple(line for line in shown.lines if line.asset.name == name)
        if not found:
            raise PageError(404, f"there is no asset {name}; /debug/features lists them")
        return replace(shown, lines=found)

    async def exclusions(self, _: DebugRequest) -> Records:
        shown = self._rendition()
        return Records([_exclusion(line) for line in shown.lines if line.object is None], shown.idle)

    async def features(self, _: DebugRequest) -> Records:
        return Records([msgspec.to_builtins(one) for one in features(self.renderer.catalog.assets)])

    async def tombstones(self, _: DebugRequest) -> Records:
        return Records([_tombstone(stone) for stone in self.renderer.catalog.tombstones])

    def _rendition(self) -> AssetsPage:
        seen = self.view.seen()
        if seen is None:
            raise PageError(500, f"nothing can be rendered: there is no HyperConverged {self.view.options.hco}")
        idle = seen.scope.why if isinstance(seen.scope, Idle) else ""
        return AssetsPage(lines(seen, self.view.sighted, self.renderer, self.now()), idle)


def _exclusion(line: AssetReport) -> dict[str, Any]:
    known = {name: value for name, value in line.document().items() if name in ("asset", "path", "component")}
    return known | {"reason": _SHORT.get(line.reason, line.reason), "details": dict(line.details)}


def _tombstone(stone: Tombstone) -> dict[str, str]:
    kind, key = stone.ref.kind, stone.ref.key
    return {"kind": kind.name, "name": key.name, "namespace": key.namespace, "path": stone.path}


def _formatted(page: Callable[[DebugRequest], Awaitable[AssetsPage | Records]]) -> DebugPage:
    async def answer(asked: DebugRequest) -> DebugReply:
        form = asked.query.get("format", "yaml")
        if form not in MEDIA:
            return DebugReply(f"there is no format {form}: use yaml or json\n", status=400)
        try:
            found = await page(asked)
        except PageError as trouble:
            return DebugReply(f"{trouble}\n", status=trouble.status)
        headers = {IDLE: found.idle} if found.idle else {}
        return DebugReply(found.text(form), media=MEDIA[form], headers=headers)

    return answer


async def _health(_: DebugRequest) -> str:
    return "OK\n"
