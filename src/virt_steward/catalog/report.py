"""What becomes of every asset, and why: the one answer for the controller, the debug pages and the command line."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from virt_steward.catalog.asset import Install
from virt_steward.catalog.conditions import Annotation, CannotTell, FeatureGate, Met, Unmet
from virt_steward.catalog.render import Rendered, RenderedNothing, RenderFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from virt_steward.catalog.asset import Asset
    from virt_steward.catalog.context import AssetContext
    from virt_steward.catalog.render import Renderer


class AssetStatus(StrEnum):
    """In which list an asset ends."""

    INCLUDED = "INCLUDED"
    EXCLUDED = "EXCLUDED"
    """The asset itself does not want to be applied now."""
    FILTERED = "FILTERED"
    """Somebody, or what is installed, keeps it out."""
    ERROR = "ERROR"


class Served(Protocol):
    """Which resources a server has; discovery knows."""

    def serves(self, group: str, plural: str) -> bool: ...


@dataclass(frozen=True, slots=True)
class AssetInputs:
    """All that filters see."""

    context: AssetContext
    scope: Collection[str] | None
    """The allow-list; None lets everything pass."""
    served: Served


@dataclass(frozen=True, slots=True)
class NotApplied:
    """An asset that is not applied."""

    status: AssetStatus
    reason: str
    details: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AssetReport:
    """One asset of the report."""

    asset: Asset
    status: AssetStatus
    reason: str = ""
    details: Mapping[str, str] = field(default_factory=dict)
    object: dict[str, Any] | None = None

    def document(self) -> dict[str, Any]:
        """As programs read it: what is empty is left out."""
        known = {
            "asset": self.asset.name,
            "path": self.asset.path,
            "component": self.asset.object.kind.name,
            "status": self.status.value,
            "reason": self.reason,
            "conditions": msgspec.to_builtins(self.asset.conditions),
            "details": dict(self.details),
            "object": self.object,
        }
        return {name: value for name, value in known.items() if value}


def in_allow_list(asset: Asset, look: AssetInputs) -> NotApplied | None:
    if look.scope is None or asset.in_scope(look.scope):
        return None
    return NotApplied(AssetStatus.FILTERED, "Not in the allow-list")


def kind_is_installed(asset: Asset, look: AssetInputs) -> NotApplied | None:
    kind = asset.object.kind
    if not kind.group or look.served.serves(kind.group, kind.plural):
        return None
    return NotApplied(AssetStatus.FILTERED, "CRD not installed", {"crd": f"{kind.plural}.{kind.group}"})


def gate_is_installed(asset: Asset, look: AssetInputs) -> NotApplied | None:
    plural, _, group = asset.gate_crd.partition(".")
    if not asset.gate_crd or look.served.serves(group, plural):
        return None
    return NotApplied(AssetStatus.FILTERED, "Gate CRD not installed", {"crd": asset.gate_crd})


def conditions_are_met(asset: Asset, look: AssetInputs) -> NotApplied | None:
    if asset.install is Install.OPT_IN and not asset.conditions:
        return NotApplied(AssetStatus.EXCLUDED, "Conditions not met", {"install": "opt-in, and nothing to opt in by"})
    verdicts = {str(condition): condition.check(look.context) for condition in asset.conditions}
    if unmet := {name: verdict.why for name, verdict in verdicts.items() if isinstance(verdict, Unmet)}:
        return NotApplied(AssetStatus.EXCLUDED, "Conditions not met", unmet)
    if unknown := {name: verdict.why for name, verdict in verdicts.items() if isinstance(verdict, CannotTell)}:
        return NotApplied(AssetStatus.EXCLUDED, "Conditions not known", unknown)
    return None


def inputs_are_known(asset: Asset, look: AssetInputs) -> NotApplied | None:
    lacking = look.context.lacks(asset)
    if not lacking:
        return None
    return NotApplied(AssetStatus.EXCLUDED, "Inputs not known", dict.fromkeys(lacking, "not known here"))


FILTERS: tuple[Callable[[Asset, AssetInputs], NotApplied | None], ...] = (
    in_allow_list,
    kind_is_installed,
    gate_is_installed,
    conditions_are_met,
    inputs_are_known,
)
"""In this order; the first that leaves an asset out decides."""


def line_of(asset: Asset, renderer: Renderer, look: AssetInputs) -> AssetReport:
    """Return what the filters and the template make of an asset, whatever its live object is like."""
    for keeps in FILTERS:
        if left := keeps(asset, look):
            return AssetReport(asset, left.status, left.reason, left.details)
    match renderer.render(asset, look.context):
        case Rendered(obj):
            return AssetReport(asset, AssetStatus.INCLUDED, object=obj)
        case RenderedNothing():
            return AssetReport(asset, AssetStatus.EXCLUDED, "Conditional template rendered empty")
        case RenderFailed(why):
            return AssetReport(asset, AssetStatus.ERROR, f"Render error: {why}")


def asked_for(asset: Asset, look: AssetInputs) -> bool:
    """Whether a person wants this very asset: named in the allow-list, or its opt-in keys set."""
    if look.scope is not None and asset.in_scope(look.scope):
        return True
    keys = [condition for condition in asset.conditions if isinstance(condition, Annotation | FeatureGate)]
    return bool(keys) and all(isinstance(condition.check(look.context), Met) for condition in keys)
