"""The decisions on all assets as a report: what the controller would apply now, or why not; as YAML or JSON."""

from __future__ import annotations

from dataclasses import dataclass
from dataclasses import field as dataclass_field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import field

from virt_steward.catalog.asset import Install
from virt_steward.controllers.autopilot.decide import Wanted, decide
from virt_steward.controllers.autopilot.verdicts import (
    AssetFailed,
    AssetPending,
    AssetSkipped,
    FailureReason,
    SkipReason,
)
from virt_steward.objects.document import JsonDocument
from virt_steward.objects.yamltext import yaml_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from datetime import datetime

    from virt_steward.catalog.asset import Asset
    from virt_steward.catalog.render import Renderer
    from virt_steward.controllers.autopilot.decide import AssetDecision
    from virt_steward.controllers.autopilot.live_summary import LiveSummary
    from virt_steward.controllers.autopilot.observation import AutopilotObservation


class AssetStatus(StrEnum):
    """In which list an asset ends."""

    INCLUDED = "INCLUDED"
    EXCLUDED = "EXCLUDED"
    """By the asset itself: its conditions, its inputs or its template."""
    FILTERED = "FILTERED"
    """By a person, or by what is installed."""
    ERROR = "ERROR"


_SUMMARIES = {
    SkipReason.OUT_OF_SCOPE: (AssetStatus.FILTERED, "Not in the allow-list"),
    SkipReason.NO_KIND: (AssetStatus.FILTERED, "CRD not installed"),
    SkipReason.NO_GATE: (AssetStatus.FILTERED, "Gate CRD not installed"),
    SkipReason.CONDITIONS: (AssetStatus.EXCLUDED, "Conditions not met"),
    SkipReason.CONDITIONS_UNKNOWN: (AssetStatus.EXCLUDED, "Conditions not known"),
    SkipReason.INPUTS_UNKNOWN: (AssetStatus.EXCLUDED, "Inputs not known"),
    SkipReason.EMPTY: (AssetStatus.EXCLUDED, "Conditional template rendered empty"),
    SkipReason.EXCLUDED: (AssetStatus.FILTERED, "Root exclusion (disabled-resources annotation)"),
    SkipReason.UNMANAGED: (AssetStatus.FILTERED, "Unmanaged"),
}
_ONLY_WATCHED = "Not written: paused, or differences are only reported"


class RenderedAsset(JsonDocument, frozen=True, omit_defaults=True):
    """One asset as programs read it, in the form of the Go autopilot: what is empty is omitted."""

    asset: str
    path: str
    component: str
    status: AssetStatus
    reason: str = ""
    conditions: tuple[dict[str, Any], ...] = ()
    details: dict[str, str] = field(default_factory=dict)
    object: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class AssetReport:
    """One asset of the report."""

    asset: Asset
    status: AssetStatus
    reason: str = ""
    details: Mapping[str, str] = dataclass_field(default_factory=dict)
    object: dict[str, Any] | None = None
    skipped: SkipReason | None = None

    def document(self) -> RenderedAsset:
        """As programs read it."""
        return RenderedAsset(
            self.asset.name,
            self.asset.path,
            self.asset.object.kind.name,
            self.status,
            self.reason,
            tuple(msgspec.to_builtins(self.asset.conditions)),
            dict(self.details),
            self.object,
        )


def report_all(
    observation: AutopilotObservation, live: Callable[[str], LiveSummary | None], renderer: Renderer, now: datetime
) -> tuple[AssetReport, ...]:
    """Return the whole catalog, in the order in which it is applied; `live` finds an asset's object by its name."""
    assets = renderer.catalog.assets
    return tuple(report_of(asset, decide(asset, observation, live(asset.name), renderer, now)) for asset in assets)


def report_of(asset: Asset, decision: AssetDecision) -> AssetReport:
    match decision.outcome:
        case Wanted(intent) as wanted:
            reason = _ONLY_WATCHED if wanted.is_only_watched else ""
            return AssetReport(asset, AssetStatus.INCLUDED, reason, object=intent)
        case AssetSkipped(SkipReason.OUT_OF_SCOPE as reason, _, _):
            return AssetReport(asset, *_SUMMARIES[reason], _opt_in_keys(asset), skipped=reason)
        case AssetSkipped(reason, _, details):
            return AssetReport(asset, *_SUMMARIES[reason], details, skipped=reason)
        case AssetPending(pending, message):
            return AssetReport(asset, AssetStatus.FILTERED, pending.value, {"why": message})
        case AssetFailed(FailureReason.RENDER, message):
            return AssetReport(asset, AssetStatus.ERROR, f"Render error: {message}")
        case AssetFailed(_, message):
            return AssetReport(asset, AssetStatus.ERROR, message)


def _opt_in_keys(asset: Asset) -> dict[str, str]:
    """What has to be set besides, once the asset is listed."""
    keys = [one.opt_in_key for one in asset.conditions if one.opt_in_key] if asset.install is Install.OPT_IN else []
    return {"opt-in": ", ".join(keys)} if keys else {}


def as_yaml(reports: Iterable[AssetReport]) -> str:
    """One document for each; status and reason are in comments, so that kubectl takes it."""
    return "---\n".join(_document(report) for report in reports)


def as_json(reports: Iterable[AssetReport]) -> str:
    listed = [report.document() for report in reports]
    return msgspec.json.format(msgspec.json.encode(listed), indent=2).decode() + "\n"


def _document(report: AssetReport) -> str:
    facts = (
        ("Asset", report.asset.name),
        ("Path", report.asset.path),
        ("Component", report.asset.object.kind.name),
        ("Status", report.status.value),
        ("Reason", report.reason),
        *report.details.items(),
    )
    head = "".join(f"# {name}: {' '.join(text.split())}\n" for name, text in facts if text)
    return head + (yaml_text(report.object) if report.object else "")
