"""What is wanted of one object, and why: as tables."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.catalog.builders import TEMPLATE, TUNING, a_context, an_asset, an_hco
from virt_steward.catalog.asset import Asset
from virt_steward.catalog.load import Catalog
from virt_steward.catalog.render import Renderer
from virt_steward.controllers.autopilot.annotation_keys import DriftMode
from virt_steward.controllers.autopilot.decide import CHECKS, AssetDecision, Wanted, decide
from virt_steward.controllers.autopilot.live_summary import live_summary
from virt_steward.controllers.autopilot.observation import AutopilotObservation, ServedKinds
from virt_steward.controllers.autopilot.options import HCO
from virt_steward.controllers.autopilot.verdicts import (
    AssetFailed,
    AssetPending,
    AssetSkipped,
    FailureReason,
    PendingReason,
    SkipReason,
)
from virt_steward.objects.checks import CheckResult
from virt_steward.objects.identity import Kind, Ref, Regarding
from virt_steward.objects.wallclock import rfc3339

NOW = datetime(2030, 1, 1, tzinfo=UTC)
PREFIX = "platform.kubevirt.io/"
REGARDING = Regarding(Ref(Kind("hco.kubevirt.io", "HyperConverged"), HCO), "hco.kubevirt.io/v1", "u-hco")
IN_NAMESPACE = TUNING | {"namespace": "speedy"}
NAMESPACED = TEMPLATE + "  namespace: speedy\n"
SIZED = TEMPLATE + "spec:\n  size: 1\n  colour: red\n"


def marked(annotations: Mapping[str, str]) -> dict[str, str]:
    return {f"{PREFIX}{name.replace('_', '-')}": value for name, value in annotations.items()}


def a_seen(*, serves: bool = True, **annotations: str) -> AutopilotObservation:
    """A platform with the autopilot on, unless its annotations say otherwise."""
    served = ServedKinds(frozenset((("tuning.example", "tunings"),) if serves else ()))
    hco = an_hco(annotations=marked({"autopilot": "true", **annotations}))
    return AutopilotObservation.of(REGARDING, a_context(hco=hco), served, frozenset(("openshift-cnv",)))


def decided(asset: Asset | None = None, seen: AutopilotObservation | None = None, **annotations: str) -> AssetDecision:
    """What comes of an asset whose live object has these annotations."""
    asset = asset or an_asset(SIZED)
    live: dict[str, Any] = {"metadata": {"name": "fast", "uid": "u-1", "annotations": marked(annotations)}}
    return decide(asset, seen or a_seen(), live_summary(live), Renderer(Catalog((asset,))), NOW)


def wanted(decision: AssetDecision) -> Wanted:
    assert isinstance(decision.outcome, Wanted), decision.outcome
    return decision.outcome


@pytest.mark.parametrize(
    ("asset", "seen", "outcome", "says"),
    [
        pytest.param(
            an_asset(), a_seen(autopilot="other"), SkipReason.OUT_OF_SCOPE, "allow-list", id="it is not listed"
        ),
        pytest.param(
            an_asset(),
            a_seen(serves=False),
            SkipReason.NO_KIND,
            "tunings.tuning.example",
            id="its kind is not served",
        ),
        pytest.param(
            an_asset(gate_crd="gates.example"),
            a_seen(),
            SkipReason.NO_GATE,
            "gates.example",
            id="its gate is not served",
        ),
        pytest.param(
            an_asset(conditions=[{"type": "annotation", "key": f"{PREFIX}enable-fast", "value": "true"}]),
            a_seen(),
            SkipReason.CONDITIONS,
            "enable-fast",
            id="nobody has asked for it",
        ),
        pytest.param(
            an_asset(conditions=[{"type": "hardware-detection", "detector": "gpuPresent"}]),
            a_seen(),
            SkipReason.CONDITIONS_UNKNOWN,
            "Conditions not known",
            id="nobody can tell whether it is asked for",
        ),
        pytest.param(
            an_asset(
                conditions=[
                    {"type": "hardware-detection", "detector": "gpuPresent"},
                    {"type": "annotation", "key": f"{PREFIX}enable-fast", "value": "true"},
                ]
            ),
            a_seen(),
            SkipReason.CONDITIONS,
            "Conditions not met",
            id="nobody has asked for it, whatever else is not known",
        ),
        pytest.param(
            an_asset(reads={"nodes": True}),
            a_seen(),
            SkipReason.INPUTS_UNKNOWN,
            "nodes",
            id="the nodes have not been read",
        ),
        pytest.param(
            an_asset("{# nothing #}"), a_seen(), SkipReason.EMPTY, "renders no object", id="it renders to nothing"
        ),
        pytest.param(an_asset("{{ missing }}"), a_seen(), FailureReason.RENDER, "missing", id="it cannot be rendered"),
        pytest.param(
            an_asset(),
            a_seen(disabled_resources="[{kind: Tuning, name: 'f*'}]"),
            SkipReason.EXCLUDED,
            "rule 1",
            id="it is excluded",
        ),
        pytest.param(
            an_asset(),
            a_seen(disabled_resources="[{kind: Tuning}]"),
            PendingReason.EXCLUSIONS_UNREADABLE,
            "rule 1: name is required",
            id="what is excluded cannot be told",
        ),
        pytest.param(
            an_asset(NAMESPACED, object=IN_NAMESPACE),
            a_seen(),
            PendingReason.NO_NAMESPACE,
            "speedy",
            id="its namespace is missing",
        ),
    ],
)
def test_decide_objects_with_reason(
    asset: Asset, seen: AutopilotObservation, outcome: SkipReason | PendingReason | FailureReason, says: str
) -> None:
    decision = decided(asset, seen)
    assert isinstance(decision.outcome, AssetSkipped | AssetPending | AssetFailed)
    assert decision.outcome.reason is outcome
    assert says in decision.outcome.message
    results = [check.result for check in decision.checks]
    number = results.index("fail")
    assert results == ["pass"] * number + ["fail"] + ["not reached"] * (len(CHECKS) - number - 1)
    assert (decision.checks[number].reason, decision.checks[number].decided) == (decision.outcome.message, True)


def test_decide_wants_what_passes_every_check() -> None:
    decision = decided()
    assert wanted(decision).intent["spec"] == {"size": 1, "colour": "red"}
    assert not wanted(decision).is_only_watched
    assert decision.checks == tuple(CheckResult(check.title, "pass") for check in CHECKS)
    assert (decision.remarks, decision.until) == ((), None)


@pytest.mark.parametrize(
    ("annotations", "reasons"),
    [
        pytest.param({"mode": "unmanged"}, ["InvalidMode"], id="a mode that means nothing"),
        pytest.param({"patch": "[{"}, ["InvalidPatch"], id="a patch that is no JSON"),
        pytest.param(
            {"patch": '[{"op": "remove", "path": "/spec/x"}]'}, ["InvalidPatch"], id="a patch that does not fit"
        ),
        pytest.param({"patch": '[{"op": "remove", "path": "/kind"}]'}, ["InvalidPatch"], id="a forbidden patch"),
        pytest.param({"ignore_fields": "spec"}, ["InvalidIgnoreFields"], id="a bad pointer"),
        pytest.param({"ignore_fields": "a,/spec/size,b"}, ["InvalidIgnoreFields"] * 2, id="two of three bad pointers"),
        pytest.param(
            {"mode": "unmanaged", "override_until": "soon"}, ["InvalidOverrideUntil"], id="an end that is no time"
        ),
    ],
)
def test_decide_remarks_bad_overrides(annotations: dict[str, str], reasons: list[str]) -> None:
    decision = decided(**annotations)
    assert [remark.reason for remark in decision.remarks] == reasons
    if "mode" not in annotations:
        assert wanted(decision).intent["spec"] == {"size": 1, "colour": "red"}


def test_decide_only_reports_with_unreadable_drift_mode() -> None:
    decision = decided(drift="of course")
    assert wanted(decision).drift is DriftMode.REPORT
    assert [remark.reason for remark in decision.remarks] == ["InvalidDrift"]


def test_decide_follows_the_order_of_overrides() -> None:
    patch = '[{"op": "replace", "path": "/spec/size", "value": 2}]'
    excluded = a_seen(disabled_resources="[{kind: Tuning, name: fast}]")
    everything = {"mode": "unmanaged", "reconcile_paused": "true", "patch": patch, "ignore_fields": "/spec/size"}
    left = decided(seen=excluded, **everything).outcome
    assert isinstance(left, AssetSkipped)
    assert left.reason is SkipReason.EXCLUDED
    left = decided(**everything).outcome
    assert isinstance(left, AssetSkipped)
    assert left.reason is SkipReason.UNMANAGED
    rest = wanted(decided(**everything | {"mode": ""}))
    assert (rest.is_paused, rest.intent["spec"]["size"]) == (True, 2)
    assert [str(pointer) for pointer in rest.mask.pointers] == ["/spec/size"]


@pytest.mark.parametrize("value", ["", "false", "True", "yes"])
def test_decide_pauses_only_with_true(value: str) -> None:
    assert not wanted(decided(reconcile_paused=value)).is_paused


def test_decide_still_compares_paused_objects() -> None:
    paused = decided(reconcile_paused="true")
    assert wanted(paused).is_only_watched
    assert {check.result for check in paused.checks} == {"pass"}


def test_decide_lifts_expired_overrides_but_not_a_pause() -> None:
    until = NOW + timedelta(minutes=5)
    overrides = {"mode": "unmanaged", "drift": "report", "reconcile_paused": "true"}
    before = decided(**overrides, override_until=rfc3339(until))
    assert isinstance(before.outcome, AssetSkipped)
    assert before.until == until
    assert [remark.reason for remark in before.remarks] == ["OverrideEnds"]
    after = decided(**overrides, override_until=rfc3339(NOW))
    assert (wanted(after).drift, wanted(after).is_paused, after.until) == (DriftMode.ENFORCE, True, None)
    assert [remark.reason for remark in after.remarks] == ["OverrideLifted"]


def test_decide_without_live_object_has_no_overrides() -> None:
    asset = an_asset(SIZED)
    decision = decide(asset, a_seen(), None, Renderer(Catalog((asset,))), NOW)
    assert wanted(decision).intent["metadata"]["labels"] == {f"{PREFIX}managed-by": "virt-platform-autopilot"}
    assert decision.overrides == {}
