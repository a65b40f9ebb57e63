"""One drifted field as data: values, author and time, from managedFields as they are."""

from datetime import UTC, datetime
from typing import Any

import pytest

from virt_steward.apis.drift import DriftEntry
from virt_steward.objects.authors import authors_of
from virt_steward.objects.diff import ABSENT
from virt_steward.objects.masks import MASK
from virt_steward.objects.paths import Pointer
from virt_steward.ssa.drift_entries import drift_entry
from virt_steward.ssa.managers import ADVISOR

MODE = Pointer(("spec", "mode"))
MODE_FIELDS = {"f:spec": {"f:mode": {}}}
FIVE, SIX = "2026-06-01T17:08:00Z", "2026-06-01T18:00:00Z"
AT_FIVE, AT_SIX = datetime(2026, 6, 1, 17, 8, tzinfo=UTC), datetime(2026, 6, 1, 18, tzinfo=UTC)


def wrote(manager: str, fields: Any = MODE_FIELDS, time: Any = FIVE, **more: Any) -> dict[str, Any]:
    return {"manager": manager, "operation": "Update", "apiVersion": "v1", "time": time, "fieldsV1": fields, **more}


def an_object(*entries: Any, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Gadget",
        "metadata": {"name": "one", "managedFields": list(entries)},
        "spec": {"mode": "Predictive", **spec},
    }


PORTS = {"f:spec": {"f:ports": {'k:{"name":"dns"}': {".": {}, "f:name": {}, "f:port": {}}}}}
DNS = an_object(wrote("edit", PORTS), ports=[{"name": "web", "port": 80}, {"name": "dns", "port": 5353}])


@pytest.mark.parametrize(
    ("live", "pointer", "managers", "at"),
    [
        pytest.param(an_object(wrote("edit")), MODE, ("edit",), AT_FIVE, id="one"),
        pytest.param(
            an_object(wrote("a", time=FIVE), wrote("b", time=SIX)), MODE, ("b", "a"), AT_SIX, id="several, last first"
        ),
        pytest.param(
            an_object(wrote("a", time=SIX), wrote("a", time=FIVE, operation="Apply")), MODE, ("a",), AT_SIX, id="twice"
        ),
        pytest.param(an_object(wrote("b", time=None), wrote("a", time=None)), MODE, ("a", "b"), None, id="no times"),
        pytest.param(an_object(wrote("edit", time="soon")), MODE, ("edit",), None, id="no time but a word"),
        pytest.param(an_object(wrote("edit", time=7)), MODE, ("edit",), None, id="no time but a number"),
        pytest.param(an_object(wrote(ADVISOR.name)), MODE, (), None, id="ours alone"),
        pytest.param(an_object(wrote(ADVISOR.name, time=SIX), wrote("edit")), MODE, ("edit",), AT_FIVE, id="beside us"),
        pytest.param(an_object(wrote("edit", {"f:spec": {"f:size": {}}})), MODE, (), None, id="another field"),
        pytest.param(an_object(wrote("edit", {"f:spec": {}})), MODE, ("edit",), AT_FIVE, id="the atomic value around"),
        pytest.param(DNS, Pointer(("spec", "ports", "1", "port")), ("edit",), AT_FIVE, id="item of a list map"),
        pytest.param(DNS, Pointer(("spec", "ports", "0", "port")), (), None, id="another item"),
        pytest.param(DNS, Pointer(("spec", "ports", "-", "port")), (), None, id="item that is gone"),
        pytest.param(DNS, Pointer(("spec", "ports")), ("edit",), AT_FIVE, id="a part of the list"),
        pytest.param(an_object(), MODE, (), None, id="no entries"),
        pytest.param({"spec": {"mode": "x"}}, MODE, (), None, id="no metadata"),
        pytest.param({"metadata": {"managedFields": "x"}}, MODE, (), None, id="no list"),
        pytest.param({"metadata": {"managedFields": None}}, MODE, (), None, id="null"),
        pytest.param({"metadata": ["x"]}, MODE, (), None, id="no map"),
        pytest.param(
            an_object("x", None, 7, wrote("x", "y"), wrote("x", {"q:y": {}}), wrote("x", {"f:spec": 7}), wrote("edit")),
            MODE,
            ("edit",),
            AT_FIVE,
            id="malformed ones beside a sound one",
        ),
        pytest.param(an_object(wrote(["x"]), wrote("x", operation=7)), MODE, (), None, id="malformed names"),
    ],
)
def test_authors_of_a_value(live: Any, pointer: Pointer, managers: tuple[str, ...], at: datetime | None) -> None:
    found = authors_of(live, pointer, but=(ADVISOR.name,))
    assert (found.managers, found.at) == (managers, at)


def test_authors_are_bounded_in_words() -> None:
    names = [f"{'x' * 90}{number}" for number in range(5)]
    text = str(authors_of(an_object(*map(wrote, names)), MODE))
    assert text == f"{'x' * 64}, {'x' * 64}, {'x' * 64} and 2 more"


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        (
            DriftEntry("/spec/mode", "Automatic", "Predictive", "kubectl-edit", AT_FIVE),
            "/spec/mode is Predictive, planned Automatic (changed by kubectl-edit, 2026-06-01T17:08:00Z)",
        ),
        (
            DriftEntry("/spec/mode", "Automatic", "", "kubectl-edit"),
            '/spec/mode is "", planned Automatic (changed by kubectl-edit)',
        ),
        (
            DriftEntry("/spec/mode", "Automatic"),
            "/spec/mode is not set, planned Automatic (removed; managedFields does not say by whom)",
        ),
        (
            DriftEntry("/spec/mode", None, "x"),
            "/spec/mode is x, planned not set (managedFields names no other manager)",
        ),
        (DriftEntry(""), "not found, it was deleted"),
    ],
)
def test_drift_sentence(entry: DriftEntry, sentence: str) -> None:
    assert entry.sentence() == sentence


@pytest.mark.parametrize(
    ("pointer", "value", "shown"),
    [
        pytest.param(MODE, "Predictive", "Predictive", id="text"),
        pytest.param(MODE, 300, "300", id="number"),
        pytest.param(MODE, None, "null", id="null"),
        pytest.param(MODE, ["a", "b"], '["a","b"]', id="list"),
        pytest.param(MODE, ABSENT, None, id="absent"),
        pytest.param(MODE, "x" * 500_000, "x" * 79 + "…", id="long"),
        pytest.param(MODE, "a\x1b[2J\nb\u202e", "a?[2J b?", id="control characters"),
        pytest.param(Pointer(("data", "password")), "hunter2", MASK, id="password"),
        pytest.param(Pointer(("spec", "apiToken")), "hunter2", MASK, id="token"),
        pytest.param(MODE, {"user": "me", "password": "hunter2"}, f'{{"user":"me","password":"{MASK}"}}', id="inside"),
        pytest.param(Pointer(("spec", "secretName")), "my-secret", "my-secret", id="only a name"),
    ],
)
def test_drift_entry_shows_values(pointer: Pointer, value: Any, shown: str | None) -> None:
    entry = drift_entry(an_object(), pointer, value, value, ADVISOR)
    assert (entry.live, entry.planned, entry.path) == (shown, shown, str(pointer))


def test_drift_entry_bounds_the_path() -> None:
    entry = drift_entry(an_object(), Pointer(("data", "y" * 10_000)), 1, 2, ADVISOR)
    assert len(entry.path) == 512
