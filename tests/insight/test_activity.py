"""Events as one timeline."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from virt_steward.controllers import NAMES, REPORTERS, definition
from virt_steward.controllers.options import ControllerOptions
from virt_steward.insight.activity import EventRecord, Series, Subject, is_recorded_there, summary, timeline
from virt_steward.objects.identity import Key
from virt_steward.objects.meta import Meta

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def an_event(
    reason: str, minutes: int = 0, controller: str = "approver", *, times: int = 1, note: str = ""
) -> EventRecord:
    at = NOON + minutes * MINUTE
    return EventRecord(
        Meta(f"{reason}-{minutes}", "default"),
        reporting_controller=REPORTERS[controller],
        reason=reason,
        note=note,
        regarding=Subject("v1", "Thing", "shop", "web"),
        event_time=at,
        series=Series(times, at + MINUTE) if times > 1 else None,
    )


def test_timeline_sorts_by_last_occurrence() -> None:
    found = timeline([an_event("Old"), an_event("Again", -9, times=20), an_event("New", 5)])
    assert [one.reason for one in found] == ["New", "Old", "Again"]
    assert [one.times for one in found] == [1, 1, 20]
    assert timeline([an_event("Old"), an_event("Again", times=2)])[0].reason == "Again"


@pytest.mark.parametrize(
    ("words", "found"),
    [
        pytest.param("", {"Placed", "Approved"}, id="no-words"),
        pytest.param("WEB approved", {"Approved"}, id="all-words-in-any-case"),
        pytest.param("thing shop/web", {"Placed", "Approved"}, id="the-object"),
        pytest.param("web nothing", set(), id="one-word-that-is-missing"),
    ],
)
def test_timeline_filters_by_words(words: str, found: set[str]) -> None:
    known = [an_event("Approved"), an_event("Placed", controller="placement")]
    assert {one.reason for one in timeline(known, words=words)} == found


def test_timeline_filters_by_controller() -> None:
    known = [
        an_event("Approved"),
        an_event("Placed", controller="placement"),
        an_event("AssetApplied", controller="autopilot"),
    ]
    assert [one.reason for one in timeline(known, controller="placement")] == ["Placed"]
    assert [one.reason for one in timeline(known, controller="autopilot")] == ["AssetApplied"], "by its own name"
    assert [one.reason for one in timeline(known, words="autopilot")] == ["AssetApplied"]


@pytest.mark.parametrize("name", NAMES)
def test_reporters_match_definitions(name: str) -> None:
    assert REPORTERS[name] == (definition(name, ControllerOptions()).reporter or name)


HCO = Key("kubevirt-hyperconverged", "kubevirt-hyperconverged")
ON_HCO = Subject("hco.kubevirt.io/v1", "HyperConverged", HCO.namespace, HCO.name)
PLAN = Subject("operators.coreos.com/v1alpha1", "InstallPlan", "shop", "install-1")
CONFIG = Subject("advisor.kubevirt.io/v1alpha1", "VirtPlatformConfig", "", "density")
FOREIGN_HCO = Subject("hco.kubevirt.io/v1", "HyperConverged", "tenant-x", HCO.name)
SECRET = Subject("v1", "Secret", "tenant-x", "any")


def recorded(controller: str, namespace: str, regarding: Subject, related: Subject | None = None) -> EventRecord:
    name = REPORTERS.get(controller, controller)
    return EventRecord(Meta("one", namespace), reporting_controller=name, regarding=regarding, related=related)


@pytest.mark.parametrize(
    ("event", "counts", "is_verified"),
    [
        pytest.param(recorded("autopilot", HCO.namespace, ON_HCO, CONFIG), True, True, id="asset"),
        pytest.param(recorded("advisor", "default", CONFIG), True, True, id="config"),
        pytest.param(recorded("approver", "shop", PLAN), True, False, id="plan"),
        pytest.param(recorded("autopilot", "tenant-x", SECRET, ON_HCO), False, True, id="asset-of-tenant"),
        pytest.param(recorded("autopilot", "tenant-x", FOREIGN_HCO, ON_HCO), False, True, id="hco-of-tenant"),
        pytest.param(recorded("advisor", "tenant-x", CONFIG), False, True, id="config-in-other-namespace"),
        pytest.param(recorded("advisor", "shop", PLAN), False, True, id="kind-of-another-controller"),
        pytest.param(recorded("approver", "tenant-x", PLAN), False, False, id="plan-of-another-namespace"),
        pytest.param(recorded("kubelet", "default", CONFIG), False, True, id="another-controller"),
    ],
)
def test_event_counts_only_where_its_controller_records_it(
    event: EventRecord, *, counts: bool, is_verified: bool
) -> None:
    assert is_recorded_there(event, HCO) is counts
    assert not counts or event.is_verified is is_verified


def test_event_is_about_related_object_only_for_autopilot() -> None:
    assert recorded("autopilot", HCO.namespace, ON_HCO, CONFIG).about == CONFIG
    assert recorded("approver", "shop", PLAN, CONFIG).about == PLAN


def test_summary_marks_what_tenants_can_write() -> None:
    plans = [msgspec.structs.replace(an_event("Approved"), regarding=PLAN)]
    assert not summary(plans, NOON)[0].is_verified
    assert summary([an_event("DriftCorrected", 0, "autopilot")], NOON)[0].is_verified


def test_summary_counts_recent_events() -> None:
    known = [an_event("Approved", 0), an_event("Approved", 3), an_event("Approved", -60), an_event("Odd", 1)]
    known.append(an_event("DriftCorrected", 1, "autopilot", times=7))
    assert [(line.number, line.what) for line in summary(known, NOON)] == [
        (2, "InstallPlans approved as pinned"),
        (7, "drifts corrected"),
    ]
    assert summary(known, NOON + 2 * MINUTE)[0].what == "InstallPlan approved as pinned"
