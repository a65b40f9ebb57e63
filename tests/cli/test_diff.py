"""What `virt-steward diff` prints, from what was found; what it finds is in tests/controllers/autopilot."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from virt_steward.cli.diff import ChangeReport, document, report_lines
from virt_steward.insight.assets.changes import AssetChange, ChangeAction
from virt_steward.insight.assets.impact import RebootImpact
from virt_steward.objects.field_changes import FieldChange, field_changes, shortened
from virt_steward.objects.identity import Key, Kind, Ref
from virt_steward.objects.meta import Meta
from virt_steward.platform.pools import Pool

SWAP = Ref(Kind("machineconfiguration.openshift.io", "MachineConfig", "machineconfigs"), Key("", "90-worker-swap"))


def a_change(action: ChangeAction, message: str = "", staged: str = "", asset: str = "swap-enable") -> AssetChange:
    live = {"apiVersion": "v1", "kind": "MachineConfig", "metadata": {"name": "90"}, "spec": {"a": 1, "b": "x" * 300}}
    planned = live | {"spec": {"a": 2, "c": [1]}}
    if action is not ChangeAction.UPDATE:
        return AssetChange(asset, SWAP, action, message)
    return AssetChange(asset, SWAP, action, message, live, planned, staged=staged)


def a_report(*changes: AssetChange, idle: str = "") -> ChangeReport:
    return ChangeReport(changes, {SWAP: RebootImpact("3 nodes reboot")}, idle)


@pytest.mark.parametrize(
    ("actions", "code"),
    [
        ((), 0),
        ((ChangeAction.NONE, ChangeAction.OWN, ChangeAction.SKIP, ChangeAction.WAIT, ChangeAction.REPORT), 0),
        ((ChangeAction.NONE, ChangeAction.CREATE), 2),
        ((ChangeAction.UPDATE,), 2),
        ((ChangeAction.DELETE,), 2),
        ((ChangeAction.DELETE, ChangeAction.UNKNOWN), 1),
    ],
)
def test_exit_code_by_actions(actions: tuple[ChangeAction, ...], code: int) -> None:
    assert a_report(*map(a_change, actions)).exit_code == code


def test_report_lines_show_fields_staging_and_impact(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    report = a_report(
        a_change(ChangeAction.UPDATE, staged="nodes of pool worker would reboot, so it waits until they do anyway"),
        a_change(ChangeAction.UNKNOWN, "forbidden (403) to patch it", asset="psi-enable"),
        a_change(ChangeAction.SKIP, "Conditions not met", asset="metallb-operator"),
    )
    lines = list(report_lines(report, show_excluded=True))
    text = " ".join(" ".join(lines).split())
    assert max(map(len, lines)) <= 80
    assert "~ MachineConfig 90-worker-swap (swap-enable): would be updated, but is staged first: nodes of" in text
    assert "impact: 3 nodes reboot /spec/a: 1 -> 2 /spec/c/0: 1 (added) /spec/b: xxx" in text
    assert "? MachineConfig 90-worker-swap (psi-enable): cannot tell: forbidden (403) to patch it" in text
    assert "metallb-operator is left out: Conditions not met" in text
    assert "1 to update, 1 of them staged first, 1 unknown; 0 in sync, 1 left out. Nothing was changed" in text
    assert "left out: Cond" not in " ".join(report_lines(report, show_excluded=False))


def test_report_lines_sum_up_reboots() -> None:
    """At once and later, by pool and cause; a group that nobody wrote down is named."""
    pool = Pool(Meta("worker"))
    created = AssetChange("psi-enable", SWAP, ChangeAction.CREATE, pools=(pool,))
    staged = replace(a_change(ChangeAction.UPDATE, staged="somebody releases it"), pools=(pool,))
    report = replace(a_report(created, staged), groups={"psi-enable": "descheduler-loadaware"})
    text = " ".join(" ".join(report_lines(report, show_excluded=False)).split())
    assert "(psi-enable, of group descheduler-loadaware): would be created" in text
    assert "At once all nodes of pool worker would reboot, because of psi-enable Later, once" in text
    assert "rolls out anyway, all nodes of pool worker would reboot, because of swap-enable 1 to create" in text


def test_report_lines_say_why_nothing_would_change() -> None:
    text = " ".join(report_lines(a_report(idle="there is no annotation"), show_excluded=False))
    assert text.startswith("Nothing would change, because the autopilot is off: there is no annotation")
    assert "--scope true" in text


def test_document_is_for_programs() -> None:
    report = a_report(a_change(ChangeAction.UPDATE), a_change(ChangeAction.SKIP), a_change(ChangeAction.NONE))
    found = msgspec.json.decode(msgspec.json.encode(document(report, show_excluded=False)))
    [entry] = found["changes"]
    assert found["exitCode"] == 2
    assert found["counts"] | {"update": 1, "skip": 1, "none": 1, "create": 0} == found["counts"]
    assert entry["fields"][0] == {"path": "/spec/a", "live": 1, "planned": 2}
    assert entry["fields"][1] == {"path": "/spec/c/0", "planned": 1}
    assert entry["fields"][2] == {"path": "/spec/b", "live": "x" * 300}
    assert (entry["staged"], entry["stagedUntil"], entry["impact"]) == (False, "", "3 nodes reboot")
    assert len(document(report, show_excluded=True).changes) == 2


def test_field_change_is_shortened_and_survives_json() -> None:
    *_, long = field_changes(a_change(ChangeAction.UPDATE).live, a_change(ChangeAction.UPDATE).planned)
    short = shortened(long, 50)
    assert short == FieldChange("/spec/b", "x" * 49 + "…")
    assert msgspec.json.decode(msgspec.json.encode(short), type=FieldChange) == short
    assert shortened(FieldChange("a", None, 3), 50) == FieldChange("a", None, 3)
