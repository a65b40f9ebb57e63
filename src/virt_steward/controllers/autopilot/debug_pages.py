"""The autopilot's debug pages: what it would apply now and what not, by its own caches and its own decisions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import msgspec

from virt_steward.catalog.aliases import current_name
from virt_steward.catalog.asset import features
from virt_steward.controllers.autopilot import annotation_keys
from virt_steward.controllers.autopilot.asset_report import AssetStatus, as_json, as_yaml, report_all
from virt_steward.controllers.autopilot.overrides.scope import Idle
from virt_steward.controllers.autopilot.verdicts import SkipReason
from virt_steward.objects.yamltext import yaml_text
from virt_steward.runtime.debug import DebugReply

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from datetime import datetime

    from virt_steward.catalog.asset import FeatureSummary
    from virt_steward.catalog.load import Tombstone
    from virt_steward.catalog.render import Renderer
    from virt_steward.controllers.autopilot.asset_report import AssetReport
    from virt_steward.controllers.autopilot.corrections import CorrectionLog
    from virt_steward.controllers.autopilot.observe import AutopilotClusterView
    from virt_steward.runtime.clock import Clock
    from virt_steward.runtime.debug import DebugPage, DebugRequest

MEDIA = {"yaml": "application/x-yaml", "json": "application/json"}
IDLE = "X-Autopilot-Idle"
"""A header that says why nothing of all this is applied."""
GOVERNED = "Governed by the advisor"
_SHORT_REASONS = {SkipReason.EXCLUDED: "Root exclusion", SkipReason.EMPTY: "Template rendered empty"}


def pages(
    view: AutopilotClusterView, renderer: Renderer, corrections: CorrectionLog, clock: Clock
) -> Mapping[str, DebugPage]:
    """Return all of them, by path."""
    source = _PageSource(view, renderer, corrections, clock.utc)
    return {
        "/debug/render": _formatted(source.everything),
        "/debug/render/{asset:.*}": _formatted(source.one),
        "/debug/exclusions": _formatted(source.exclusions),
        "/debug/features": _formatted(source.features),
        "/debug/tombstones": _formatted(source.tombstones),
        "/debug/corrections": _formatted(source.last_corrections),
        "/debug/health": _health,
    }


class PageError(Exception):
    """A request that cannot be answered: the HTTP status, and a message."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class AssetsPage:
    """Assets, each with its object or why there is none."""

    reports: tuple[AssetReport, ...]
    idle: str
    """Why nothing of this is applied; empty while the autopilot is on."""

    def text(self, form: str) -> str:
        return as_json(self.reports) if form == "json" else as_yaml(self.reports)


@dataclass(frozen=True, slots=True)
class RecordsPage:
    """Plain records."""

    found: Any
    idle: str = ""

    def text(self, form: str) -> str:
        if form == "json":
            return msgspec.json.format(msgspec.json.encode(self.found), indent=2).decode() + "\n"
        return yaml_text(self.found)


@dataclass(frozen=True, slots=True)
class _PageSource:
    """What the pages are made from."""

    view: AutopilotClusterView
    renderer: Renderer
    corrections: CorrectionLog
    now: Callable[[], datetime]

    async def everything(self, asked: DebugRequest) -> AssetsPage:
        page = self._assets()
        reports = page.reports
        if asked.query.get("show-excluded") != "true":
            shown = (AssetStatus.INCLUDED, AssetStatus.ERROR)
            reports = tuple(report for report in reports if report.status in shown)
        if asked.query.get("only-installed") == "true":
            reports = tuple(report for report in reports if report.skipped is not SkipReason.NO_KIND)
        return replace(page, reports=reports)

    async def one(self, asked: DebugRequest) -> AssetsPage:
        name = current_name(asked.path["asset"])
        if not name:
            raise PageError(400, "which asset? /debug/features lists them")
        page = self._assets()
        found = tuple(report for report in page.reports if report.asset.name == name)
        if not found:
            raise PageError(404, f"there is no asset {name}; /debug/features lists them")
        return replace(page, reports=found)

    async def exclusions(self, _: DebugRequest) -> RecordsPage:
        """List assets that are not applied, and those of which the advisor governs fields."""
        page = self._assets()
        excluded = [_exclusion(report) for report in page.reports if report.object is None]
        return RecordsPage([*excluded, *filter(None, map(self._governed, page.reports))], page.idle)

    async def features(self, asked: DebugRequest) -> RecordsPage:
        """List features; with ?release= as a Go release lists them, for programs that read those."""
        found = features(self.renderer.catalog.assets)
        match asked.query.get("release"):
            case None:
                return RecordsPage([msgspec.to_builtins(one) for one in found])
            case "4.22":
                return RecordsPage([_go_feature(one) for one in found])
            case "5.0":
                framework = {"maturity": "GA", "opt_in": f"{annotation_keys.SCOPE}=true"}
                return RecordsPage({"framework": framework, "features": [_go_feature(one) for one in found]})
        raise PageError(400, "release must be 4.22 or 5.0; leave it out for all that is known of features")

    async def tombstones(self, _: DebugRequest) -> RecordsPage:
        return RecordsPage([_tombstone(stone) for stone in self.renderer.catalog.tombstones])

    async def last_corrections(self, _: DebugRequest) -> RecordsPage:
        """List what others changed and this process corrected: field, values, author and time."""
        return RecordsPage(self.corrections.records())

    def _governed(self, report: AssetReport) -> dict[str, Any] | None:
        governed = self.view.governed(report.asset) if report.object else None
        if governed is None or not governed.paths:
            return None
        details = {
            "annotation": annotation_keys.GOVERNED_BY,
            "virtPlatformConfig": ", ".join(sorted(governed.configs)),
            "fields": ", ".join(sorted(governed.paths)),
        }
        return _identity(report) | {"reason": GOVERNED, "details": details}

    def _assets(self) -> AssetsPage:
        observation = self.view.seen()
        if observation is None:
            raise PageError(500, f"nothing can be rendered: there is no HyperConverged {self.view.options.hco}")
        idle = observation.scope.why if isinstance(observation.scope, Idle) else ""
        return AssetsPage(report_all(observation, self.view.live_summary, self.renderer, self.now()), idle)


def _go_feature(feature: FeatureSummary) -> dict[str, Any]:
    document = {**msgspec.to_builtins(feature), "opt_in": ", ".join(feature.opt_in) or None}
    return {name: value for name, value in document.items() if name != "assets" and (value or name != "requires")}


def _exclusion(report: AssetReport) -> dict[str, Any]:
    reason = _SHORT_REASONS.get(report.skipped, report.reason) if report.skipped else report.reason
    return _identity(report) | {"reason": reason, "details": dict(report.details)}


def _identity(report: AssetReport) -> dict[str, Any]:
    asset = report.asset
    return {"asset": asset.name, "path": asset.path, "component": asset.object.kind.name}


def _tombstone(stone: Tombstone) -> dict[str, str]:
    kind, key = stone.ref.kind, stone.ref.key
    return {"kind": kind.name, "name": key.name, "namespace": key.namespace, "path": stone.path}


def _formatted(page: Callable[[DebugRequest], Awaitable[AssetsPage | RecordsPage]]) -> DebugPage:
    async def answer(asked: DebugRequest) -> DebugReply:
        form = asked.query.get("format", "yaml")
        if form not in MEDIA:
            return DebugReply(f"there is no format {form}: use yaml or json\n", status=400)
        try:
            found = await page(asked)
        except PageError as error:
            return DebugReply(f"{error}\n", status=error.status)
        headers = {IDLE: found.idle} if found.idle else {}
        return DebugReply(found.text(form), media=MEDIA[form], headers=headers)

    return answer


async def _health(_: DebugRequest) -> str:
    return "OK\n"
