"""Gates on a real API server: what opens them, what they say, and how often they are asked."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.audit import AuditLog
from tests.clients import a_client
from tests.grants import an_account
from tests.holds.fake_prometheus import FakePrometheus, a_fake_prometheus, vector
from tests.runtime.clocks import ManualClock
from tests.widgets import V1, WIDGET, a_widget, the_widget
from virt_steward.holds.gate_board import REMEMBERED, GateBoard, grants_for
from virt_steward.holds.gate_settings import (
    GateDefinition,
    GateSettings,
    ObjectGate,
    PrometheusGate,
    PrometheusSettings,
)
from virt_steward.holds.gates import LONGEST_EVIDENCE, GateState
from virt_steward.kube.client import Client
from virt_steward.runtime.access import Access, Installation
from virt_steward_demo.local.controlplane import ControlPlane


def objects(namespace: str, **rest: Any) -> GateSettings:
    rules = {"conditions": {"Degraded": "False", "Available": "True"}, **rest}
    return GateSettings({"ours": GateDefinition(ObjectGate(V1, "Widget", namespace=namespace, **rules))})


async def state(client: Client, settings: GateSettings, name: str = "ours") -> GateState:
    return (await GateBoard(client, settings, ManualClock()).evaluate([name]))[name]


async def set_conditions(client: Client, namespace: str, name: str, **conditions: str) -> None:
    found = [{"type": one, "status": status, "reason": "Tests"} for one, status in conditions.items()]
    await client.merge_patch(the_widget(namespace, name), {"status": {"conditions": found}}, subresource="status")


async def test_object_gate_is_open_while_all_have_the_conditions(admin: Client, widgets: str) -> None:
    closed = await state(admin, objects(widgets))
    assert (closed.is_open, "no Widget" in closed.evidence) == (False, True)
    for name in ("a", "b"):
        await admin.create(a_widget(widgets, name, labels={"of": name}))
    await set_conditions(admin, widgets, "a", Degraded="False", Available="True")
    found = await state(admin, objects(widgets))
    assert (found.is_open, found.evidence) == (False, f"Widget {widgets}/b has no condition Degraded")
    assert (await state(admin, objects(widgets, selector="of=a"))).is_open
    await set_conditions(admin, widgets, "b", Degraded="True", Available="True")
    assert (await state(admin, objects(widgets))).evidence == f"Widget {widgets}/b has Degraded=True (Tests)"
    await set_conditions(admin, widgets, "b", Degraded="False", Available="True", Other="Unknown")
    assert (await state(admin, objects(widgets))).is_open


async def test_object_gate_of_absence_is_open_without_objects(admin: Client, widgets: str) -> None:
    settings = objects(widgets, conditions={}, absent=True)
    assert (await state(admin, settings)).is_open
    for number in range(5):
        await admin.create(a_widget(widgets, f"w{number}"))
    found = await state(admin, settings)
    names = "; ".join(f"Widget {widgets}/w{number} exists" for number in range(3))
    assert (found.is_open, found.evidence) == (False, f"{names} and 2 more")


async def test_object_gate_reads_no_status_of_another_shape(admin: Client, widgets: str) -> None:
    await admin.create(a_widget(widgets))
    await admin.merge_patch(the_widget(widgets), {"status": {"conditions": "x" * 5000}}, subresource="status")
    found = await state(admin, objects(widgets))
    assert not found.is_open
    assert "cannot be read" in found.evidence
    assert len(found.evidence) <= LONGEST_EVIDENCE


async def test_gate_that_cannot_be_evaluated_is_closed(admin: Client) -> None:
    unserved = await state(admin, GateSettings(), "cluster-operators")
    assert (unserved.is_open, "cannot be evaluated" in unserved.evidence) == (False, True)
    unknown = await state(admin, GateSettings(), "polls")
    assert (unknown.is_open, "not defined, only cluster-operators, no-critical" in unknown.evidence) == (False, True)
    alerts = await state(admin, GateSettings(), "no-critical-alerts")
    assert (alerts.is_open, "set prometheus.url" in alerts.evidence) == (False, True)


async def test_rights_of_gates_are_exactly_what_they_need(
    admin: Client, widgets: str, control_plane: ControlPlane, audit_log: AuditLog
) -> None:
    begin = audit_log.mark()
    settings = objects(widgets, conditions={}, absent=True)
    access = Access("gatekeeper", tuple(grants_for(settings, "advisor")), only_looks=True)
    account = await an_account(admin, access, Installation(widgets, prefix=widgets))
    async with a_client(control_plane, token=account.token) as client:
        assert (await state(client, settings)).is_open
        requests = [one for one in audit_log.since(begin) if one.user == account.user and one.resource == "widgets"]
        assert [one.verb for one in requests] == ["list"]
        elsewhere = await state(client, objects("default", conditions={}, absent=True))
        assert (elsewhere.is_open, "forbidden" in elsewhere.evidence.lower()) == (False, True)
        assert "virt-steward rbac --controllers advisor,approver,autopilot --gates FILE" in elsewhere.evidence


@pytest.fixture
async def fake() -> AsyncIterator[FakePrometheus]:
    async with a_fake_prometheus() as started:
        yield started


async def test_gate_is_asked_once_however_many_wait(admin: Client, fake: FakePrometheus) -> None:
    settings = GateSettings(
        {"quiet": GateDefinition(prometheus=PrometheusGate("errors > 1"))}, PrometheusSettings(fake.url)
    )
    clock = ManualClock()
    board = GateBoard(admin, settings, clock)
    fake.answer = vector({"alertname": "A"})
    answers = await asyncio.gather(*(board.evaluate(["quiet", "no-critical-alerts"]) for _ in range(100)))
    assert len(fake.queries) == 2
    since = clock.utc()
    assert {one["quiet"] for one in answers} == {GateState("quiet", is_open=False, evidence="A", since=since)}
    await clock.advance(REMEMBERED)
    assert (await board.evaluate(["quiet"]))["quiet"].since == since
    fake.answer = vector()
    await clock.advance(REMEMBERED)
    assert (await board.evaluate(["quiet"]))["quiet"] == GateState("quiet", is_open=True)
    assert len(fake.queries) == 4


def test_kind_of_a_gate_needs_no_discovery_for_rbac() -> None:
    assert ObjectGate(V1, "Widget").object_kind == WIDGET
    assert ObjectGate("v1", "Node").object_kind.plural == "nodes"
    assert ObjectGate("a/v1", "Policy", plural="policies").object_kind.plural == "policies"
