"""From what was seen to what is wanted of one object, and why; without a look at the object beyond its annotations."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from virt_steward.catalog import report
from virt_steward.catalog.conditions import CannotTell, Unmet
from virt_steward.catalog.render import Rendered, RenderedNothing, labelled
from virt_steward.controllers.autopilot import annotation_keys
from virt_steward.controllers.autopilot.overrides.drift_mode import BadDriftMode, DriftMode, drift_mode
from virt_steward.controllers.autopilot.overrides.exclusions import UnreadableExclusions
from virt_steward.controllers.autopilot.overrides.expiry import in_force
from virt_steward.controllers.autopilot.overrides.mask import NO_MASK, Mask, parse
from virt_steward.controllers.autopilot.overrides.patch import PatchRefused, patched
from virt_steward.controllers.autopilot.verdicts import AssetFailed, AssetSkipped, Broken, Held, LeftAlone, Waits
from virt_steward.objects.identity import ref_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from virt_steward.catalog.asset import Asset
    from virt_steward.catalog.render import Renderer
    from virt_steward.controllers.autopilot.live_summary import LiveSummary
    from virt_steward.controllers.autopilot.observation import AutopilotObservation
    from virt_steward.ssa.locks import Object


@dataclass(frozen=True, slots=True)
class Remark:
    """Something about an override that its author should know."""

    reason: str
    why: str
    text: str = ""
    """The override itself: the same words about another one are news."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the asset comes to, before the live object is looked at."""

    intent: Object
    mask: Mask
    drift: DriftMode
    is_paused: bool

    @property
    def is_only_watched(self) -> bool:
        """A difference is told, and nobody sets it right."""
        return self.is_paused or self.drift is DriftMode.REPORT


@dataclass(frozen=True, slots=True)
class AssetCase:
    """One asset before the checks."""

    asset: Asset
    seen: AutopilotObservation
    sighted: LiveSummary | None
    renderer: Renderer
    now: datetime
    overrides: Mapping[str, str]
    """The annotations on the live object that are in force."""
    intent: Object | None = None
    remarks: tuple[Remark, ...] = ()

    def remarked(self, reason: str, why: str, text: str = "") -> AssetCase:
        return replace(self, remarks=(*self.remarks, Remark(reason, why, text)))


@dataclass(frozen=True, slots=True)
class AssetCheck:
    """One check, and what it said; empty if it had no objection."""

    check: str
    objection: str


@dataclass(frozen=True, slots=True)
class AssetDecision:
    outcome: Wanted | LeftAlone | Waits | AssetFailed
    steps: tuple[AssetCheck, ...]
    """All that was checked, the one that decided last."""
    remarks: tuple[Remark, ...]
    overrides: Mapping[str, str]
    """Those in force."""
    until: datetime | None
    """When overrides end, which changes the answer without any event."""


def rendered(case: AssetCase) -> AssetCase | LeftAlone | AssetFailed:
    match case.renderer.render(case.asset, case.seen.look.context):
        case Rendered(obj):
            return replace(case, intent=obj)
        case RenderedNothing():
            return LeftAlone(AssetSkipped.EMPTY, "its template asks for nothing on a cluster like this one")
        case failed:
            return AssetFailed(Broken.RENDER, failed.why)


def not_excluded(case: AssetCase) -> AssetCase | LeftAlone | Waits:
    exclusions = case.seen.exclusions
    if isinstance(exclusions, UnreadableExclusions):
        return Waits(
            Held.EXCLUSIONS_UNREADABLE,
            f"nothing is written before {annotation_keys.EXCLUDED} can be read: {exclusions.why}",
        )
    ref = ref_of(case.intent or {})
    if rule := exclusions.excludes(ref.kind.name, ref.key.namespace, ref.key.name):
        return LeftAlone(AssetSkipped.EXCLUDED, f"{annotation_keys.EXCLUDED} excludes it: {rule}")
    return case


def managed(case: AssetCase) -> AssetCase | LeftAlone:
    mode = case.overrides.get(annotation_keys.MODE, "")
    if mode == annotation_keys.UNMANAGED:
        return LeftAlone(AssetSkipped.UNMANAGED, f"it carries {annotation_keys.MODE}: {annotation_keys.UNMANAGED}")
    if mode:
        why = (
            f"{annotation_keys.MODE} is {mode!r}; the only value is {annotation_keys.UNMANAGED!r}, so it stays managed"
        )
        return case.remarked("InvalidMode", why)
    return case


def patched_by_its_owner(case: AssetCase) -> AssetCase:
    text = case.overrides.get(annotation_keys.PATCH)
    if text is None:
        return case
    match patched(case.intent or {}, text):
        case PatchRefused(why):
            return case.remarked("InvalidPatch", f"{annotation_keys.PATCH} is left out: {why}")
        case good:
            note = f"{good.operations} operation(s) of {annotation_keys.PATCH} applied"
            return replace(case, intent=labelled(good.obj)).remarked("PatchApplied", note, text)


def namespace_is_there(case: AssetCase) -> AssetCase | Waits:
    namespace = (case.intent or {})["metadata"].get("namespace", "")
    if not namespace or namespace in case.seen.namespaces:
        return case
    return Waits(
        Held.NO_NAMESPACE, f"namespace {namespace} does not exist: its operator is not installed, or was removed"
    )


_LEFT: dict[object, AssetSkipped] = {
    report.in_allow_list: AssetSkipped.OUT_OF_SCOPE,
    report.kind_is_installed: AssetSkipped.NO_KIND,
    report.gate_is_installed: AssetSkipped.NO_GATE,
    report.conditions_are_met: AssetSkipped.CONDITIONS,
    report.inputs_are_known: AssetSkipped.UNKNOWN,
}

CHECKS: tuple[Callable[[AssetCase], AssetCase | LeftAlone | Waits | AssetFailed], ...] = (
    rendered,
    not_excluded,
    managed,
    patched_by_its_owner,
    namespace_is_there,
)


def decide(
    asset: Asset, seen: AutopilotObservation, sighted: LiveSummary | None, renderer: Renderer, now: datetime
) -> AssetDecision:
    """Take the catalog's filters and then the checks in order; the first objection decides."""
    force = in_force(sighted.annotations if sighted else {}, now)
    case = AssetCase(asset, seen, sighted, renderer, now, force.overrides)
    for remark in force.remarks:
        case = case.remarked(*remark)
    steps: list[AssetCheck] = []
    for keeps in report.FILTERS:
        if left := keeps(asset, seen.look):
            leaves = LeftAlone(_reason(keeps, asset, seen), _sentence(left))
            return _objected(case, (*steps, AssetCheck(keeps.__name__, leaves.why)), leaves)
        steps.append(AssetCheck(keeps.__name__, ""))
    for check in CHECKS:
        match check(case):
            case AssetCase() as case:
                steps.append(AssetCheck(check.__name__, ""))
            case objection:
                return _objected(case, (*steps, AssetCheck(check.__name__, objection.why)), objection)
    return _wanted(case, tuple(steps), force.until)


def _objected(
    case: AssetCase, steps: tuple[AssetCheck, ...], objection: LeftAlone | Waits | AssetFailed
) -> AssetDecision:
    return AssetDecision(objection, steps, case.remarks, case.overrides, in_force(case.overrides, case.now).until)


def _reason(keeps: object, asset: Asset, seen: AutopilotObservation) -> AssetSkipped:
    """Tell what is not wanted from what may be wanted, if only somebody knew."""
    if keeps is report.conditions_are_met:
        verdicts = {type(condition.check(seen.look.context)) for condition in asset.conditions}
        if CannotTell in verdicts and Unmet not in verdicts:
            return AssetSkipped.UNKNOWN
    return _LEFT[keeps]


def _sentence(left: report.NotApplied) -> str:
    details = ", ".join(f"{name}: {why}" for name, why in left.details.items())
    return f"{left.reason} ({details})" if details else left.reason


def _wanted(case: AssetCase, steps: tuple[AssetCheck, ...], until: datetime | None) -> AssetDecision:
    mask = NO_MASK
    if text := case.overrides.get(annotation_keys.IGNORED):
        mask = parse(text)
        for bad in mask.bad:
            case = case.remarked("InvalidIgnoreFields", f"{annotation_keys.IGNORED}: {bad}; the other pointers count")
    mode = drift_mode(case.overrides.get(annotation_keys.DRIFT))
    if isinstance(mode, BadDriftMode):
        case = case.remarked("InvalidDrift", mode.why)
        mode = mode.mode
    is_paused = (
        case.overrides.get(annotation_keys.PAUSED) == "true"
    )  # stops writes, not looks: a difference is of interest
    assert case.intent is not None  # noqa: S101 - rendered above
    return AssetDecision(Wanted(case.intent, mask, mode, is_paused), steps, case.remarks, case.overrides, until)
