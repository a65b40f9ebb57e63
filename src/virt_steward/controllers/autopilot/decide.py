"""The one judgement of an asset: from what was observed to what is wanted of its object, check by check. Pure.

Of the live object only the annotations count here; `converge` compares the rest. Debug pages, `render`,
`explain asset` and the console show this decision, so that none of them can disagree with the controller.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from virt_steward.catalog.asset import Install
from virt_steward.catalog.conditions import AnnotationCondition, CannotTell, FeatureGateCondition, Met, Unmet
from virt_steward.catalog.render import Rendered, RenderedNothing, labelled
from virt_steward.controllers.autopilot import annotation_keys
from virt_steward.controllers.autopilot.annotation_keys import DriftMode
from virt_steward.controllers.autopilot.overrides.exclusions import UnreadableExclusions
from virt_steward.controllers.autopilot.overrides.expiry import in_force
from virt_steward.controllers.autopilot.overrides.mask import NO_MASK, Mask, parse
from virt_steward.controllers.autopilot.overrides.patch import PatchRefused, patched
from virt_steward.controllers.autopilot.overrides.scope import Only
from virt_steward.controllers.autopilot.rollouts.policy import REBOOTING, parse_policy
from virt_steward.controllers.autopilot.verdicts import (
    AssetFailed,
    AssetPending,
    AssetSkipped,
    FailureReason,
    PendingReason,
    SkipReason,
)
from virt_steward.objects.checks import CheckResult
from virt_steward.objects.identity import ref_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from virt_steward.catalog.asset import Asset
    from virt_steward.catalog.render import Renderer
    from virt_steward.controllers.autopilot.live_summary import LiveSummary
    from virt_steward.controllers.autopilot.observation import AutopilotObservation
    from virt_steward.controllers.autopilot.rollouts.policy import RolloutPolicy
    from virt_steward.ssa.locks import Object

MOST_REMARKS = 20
"""About one annotation: each becomes an event, and who corrects these learns of the next."""


@dataclass(frozen=True, slots=True)
class Remark:
    """Something about an override that its author should know; becomes an event."""

    reason: str
    message: str
    text: str = ""
    """The override itself: the same message about another override is reported again."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the asset comes to, before the live object is compared."""

    intent: Object
    mask: Mask
    drift: DriftMode
    is_paused: bool
    rollout: RolloutPolicy
    """When a change may be written that reboots nodes, or that another instance left to us."""

    @property
    def is_only_watched(self) -> bool:
        """Whether a difference is reported and not corrected."""
        return self.is_paused or self.drift is DriftMode.REPORT


@dataclass(frozen=True, slots=True)
class AssetCase:
    """One asset on its way through the checks."""

    asset: Asset
    observation: AutopilotObservation
    renderer: Renderer
    overrides: Mapping[str, str]
    """The annotations on the live object that are in force."""
    intent: Object | None = None
    remarks: tuple[Remark, ...] = ()

    def remarked(self, reason: str, message: str, text: str = "") -> AssetCase:
        return replace(self, remarks=(*self.remarks, Remark(reason, message, text)))


Objection = AssetSkipped | AssetPending | AssetFailed


@dataclass(frozen=True, slots=True)
class AssetCheck:
    """One check: passes the case on, or ends it with a verdict."""

    title: str
    """For users: a short fact that holds if the check passes."""
    run: Callable[[AssetCase], AssetCase | Objection]


@dataclass(frozen=True, slots=True)
class AssetDecision:
    outcome: Wanted | Objection
    checks: tuple[CheckResult, ...]
    """All of CHECKS, in their order; those after the one that decided were not reached."""
    remarks: tuple[Remark, ...]
    overrides: Mapping[str, str]
    """Those in force."""
    until: datetime | None
    """When overrides end, which changes the decision without any event."""


def in_allow_list(case: AssetCase) -> AssetCase | AssetSkipped:
    scope = case.observation.scope
    if isinstance(scope, Only) and not case.asset.in_scope(scope.names):
        return AssetSkipped(SkipReason.OUT_OF_SCOPE, "Not in the allow-list")
    return case


def crd_installed(case: AssetCase) -> AssetCase | AssetSkipped:
    if is_kind_served(case.asset, case.observation):
        return case
    kind = case.asset.object.kind
    return _skipped(SkipReason.NO_KIND, "CRD not installed", {"crd": f"{kind.plural}.{kind.group}"})


def gate_crd_installed(case: AssetCase) -> AssetCase | AssetSkipped:
    if is_gate_served(case.asset, case.observation):
        return case
    return _skipped(SkipReason.NO_GATE, "Gate CRD not installed", {"crd": case.asset.gate_crd})


def conditions_met(case: AssetCase) -> AssetCase | AssetSkipped:
    """An unmet condition decides before an unknown one: whatever the unknown one is, the asset is not wanted."""
    context = case.observation.context
    results = {str(condition): condition.check(context) for condition in case.asset.conditions}
    if unmet := {name: result.why for name, result in results.items() if isinstance(result, Unmet)}:
        return _skipped(SkipReason.CONDITIONS, "Conditions not met", unmet)
    if unknown := {name: result.why for name, result in results.items() if isinstance(result, CannotTell)}:
        return _skipped(SkipReason.CONDITIONS_UNKNOWN, "Conditions not known", unknown)
    return case


def inputs_known(case: AssetCase) -> AssetCase | AssetSkipped:
    if lacking := case.observation.context.lacks(case.asset):
        return _skipped(SkipReason.INPUTS_UNKNOWN, "Inputs not known", dict.fromkeys(lacking, "not known here"))
    return case


def rendered(case: AssetCase) -> AssetCase | AssetSkipped | AssetFailed:
    match case.renderer.render(case.asset, case.observation.context):
        case Rendered(obj):
            return replace(case, intent=obj)
        case RenderedNothing():
            return AssetSkipped(SkipReason.EMPTY, "The template renders no object on this cluster")
        case failed:
            return AssetFailed(FailureReason.RENDER, failed.why, failed.code)


def not_excluded(case: AssetCase) -> AssetCase | AssetSkipped | AssetPending:
    exclusions = case.observation.exclusions
    if isinstance(exclusions, UnreadableExclusions):
        return AssetPending(PendingReason.EXCLUSIONS_UNREADABLE, unreadable_exclusions(exclusions.why))
    ref = ref_of(case.intent or {})
    if rule := exclusions.excludes(ref.kind.name, ref.key.namespace, ref.key.name):
        message = f"{annotation_keys.EXCLUDED} excludes it: {rule}"
        details = {"annotation": annotation_keys.EXCLUDED, "why": message}
        return AssetSkipped(SkipReason.EXCLUDED, message, details)
    return case


def managed(case: AssetCase) -> AssetCase | AssetSkipped:
    mode = case.overrides.get(annotation_keys.MODE, "")
    if mode == annotation_keys.UNMANAGED:
        message = f"it has the annotation {annotation_keys.MODE}: {annotation_keys.UNMANAGED}"
        return AssetSkipped(SkipReason.UNMANAGED, message, {"why": message})
    if mode:
        known = f"the only value is {annotation_keys.UNMANAGED!r}"
        return case.remarked("InvalidMode", f"{annotation_keys.MODE} is {mode[:40]!r}; {known}, so it stays managed")
    return case


def namespace_exists(case: AssetCase) -> AssetCase | AssetPending:
    namespace = (case.intent or {})["metadata"].get("namespace", "")
    if not namespace or namespace in case.observation.namespaces:
        return case
    return AssetPending(
        PendingReason.NO_NAMESPACE,
        f"namespace {namespace} does not exist: install the operator that it belongs to",
    )


CHECKS = (
    AssetCheck("In the allow-list", in_allow_list),
    AssetCheck("CRD installed", crd_installed),
    AssetCheck("Gate CRD installed", gate_crd_installed),
    AssetCheck("Conditions met", conditions_met),
    AssetCheck("Inputs known", inputs_known),
    AssetCheck("Template renders an object", rendered),
    AssetCheck("Not excluded", not_excluded),
    AssetCheck("Managed", managed),
    AssetCheck("Namespace exists", namespace_exists),
)
"""In this order; the first objection decides."""


def decide(
    asset: Asset, observation: AutopilotObservation, live: LiveSummary | None, renderer: Renderer, now: datetime
) -> AssetDecision:
    """Judge one asset. `live` is None if the object does not exist."""
    force = in_force(live.annotations if live else {}, now)
    remarks = tuple(Remark(*remark) for remark in force.remarks)
    case = AssetCase(asset, observation, renderer, force.overrides, remarks=remarks)
    results: list[CheckResult] = []
    for number, check in enumerate(CHECKS, start=1):
        match check.run(case):
            case AssetCase() as case:
                results.append(CheckResult(check.title, "pass"))
            case objection:
                results.append(CheckResult(check.title, "fail", objection.message, decided=True))
                results += (CheckResult(later.title, "not reached") for later in CHECKS[number:])
                return AssetDecision(objection, tuple(results), case.remarks, case.overrides, force.until)
    case, wanted = _overridden(case)
    return AssetDecision(wanted, tuple(results), case.remarks, case.overrides, force.until)


def is_kind_served(asset: Asset, observation: AutopilotObservation) -> bool:
    kind = asset.object.kind
    return not kind.group or observation.served.serves(kind.group, kind.plural)


def is_gate_served(asset: Asset, observation: AutopilotObservation) -> bool:
    plural, _, group = asset.gate_crd.partition(".")
    return not asset.gate_crd or observation.served.serves(group, plural)


def is_requested(asset: Asset, observation: AutopilotObservation) -> bool:
    """Whether the asset is asked for: named in the allow-list, always on, or by its opt-in keys.

    An asset that is always on does not count where its conditions are not met: nobody misses what it needs.
    """
    if isinstance(observation.scope, Only):
        return asset.in_scope(observation.scope.names)
    context = observation.context
    if asset.install is Install.ALWAYS:
        return all(isinstance(condition.check(context), Met) for condition in asset.conditions)
    keys = [one for one in asset.conditions if isinstance(one, AnnotationCondition | FeatureGateCondition)]
    return bool(keys) and all(isinstance(key.check(context), Met) for key in keys)


def unreadable_exclusions(problem: str) -> str:
    return f"nothing is written until {annotation_keys.EXCLUDED} is corrected: {problem}"


def _skipped(reason: SkipReason, summary: str, details: Mapping[str, str]) -> AssetSkipped:
    facts = ", ".join(f"{name}: {fact}" for name, fact in details.items())
    return AssetSkipped(reason, f"{summary} ({facts})", details)


def _overridden(case: AssetCase) -> tuple[AssetCase, Wanted]:
    """Take the overrides of the object's annotations into account: patch, ignored fields, drift mode and pause.

    An override that cannot be read is remarked and otherwise not followed; it never holds up the asset.
    """
    case = _with_patch(case)
    mask = NO_MASK
    if text := case.overrides.get(annotation_keys.IGNORED):
        mask = parse(text)
        for bad in mask.bad[:MOST_REMARKS]:
            message = f"{annotation_keys.IGNORED}: {bad}; the other pointers apply"
            case = case.remarked("InvalidIgnoreFields", message)
    drift = DriftMode.parse(case.overrides.get(annotation_keys.DRIFT))
    if drift is None:
        given, known = case.overrides[annotation_keys.DRIFT], " or ".join(repr(mode.value) for mode in DriftMode)
        message = f"{annotation_keys.DRIFT} is {given[:40]!r}, not {known}: differences are only reported until it is"
        case = case.remarked("InvalidDrift", message)
    is_paused = case.overrides.get(annotation_keys.PAUSED) == "true"
    rollout = parse_policy(case.observation.context.hco.annotations, case.overrides)
    for problem in rollout.problems if case.asset.object.kind in REBOOTING else ():
        case = case.remarked("InvalidRollout", problem)
    # An unreadable mode means report: a user who sets it wants fewer writes, not more.
    return case, Wanted(case.intent or {}, mask, drift or DriftMode.REPORT, is_paused, rollout)


def _with_patch(case: AssetCase) -> AssetCase:
    text = case.overrides.get(annotation_keys.PATCH)
    if text is None:
        return case
    match patched(case.intent or {}, text):
        case PatchRefused(problem):
            return case.remarked("InvalidPatch", f"{annotation_keys.PATCH} is not applied: {problem}")
        case good:
            message = f"{good.operations} operation(s) of {annotation_keys.PATCH} applied"
            return replace(case, intent=labelled(good.obj)).remarked("PatchApplied", message, text)
