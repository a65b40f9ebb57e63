from random import Random

import pytest

from tests.audit import AuditLog, Mark
from tests.ssa.gadgets import Build, a_config_map, a_gadget, a_name, a_pod_template, a_service, annotated, written
from virt_steward.kube.client import Client
from virt_steward.ssa.locks import Stale
from virt_steward.ssa.managers import ADVISOR
from virt_steward.ssa.memo import Memo, Sighting
from virt_steward.ssa.preview import Changes, Conflicts, Creates, Unchanged
from virt_steward.ssa.previewer import Previewer, Settled


class Time:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def requests(audit_log: AuditLog, mark: Mark, name: str) -> list[str]:
    return [request.verb for request in audit_log.since(mark) if request.name == name]


KINDS = [
    pytest.param(lambda name: a_gadget(name, size=1), id="a custom resource"),
    pytest.param(lambda name: a_config_map(name, a="1"), id="a config map, which has no generation"),
    pytest.param(lambda name: a_service(name, web=80), id="a service"),
    pytest.param(lambda name: a_pod_template(name, web="w:1"), id="a pod template"),
]


@pytest.mark.parametrize("build", KINDS)
async def test_once_converged_there_is_no_request_until_somebody_changes(
    client: Client, audit_log: AuditLog, build: Build
) -> None:
    name = a_name()
    intent = build(name)
    previewer = Previewer(client, Memo(Random(1)), Time())
    seen = await written(client, intent, by=ADVISOR.name)
    assert await previewer.preview(intent, ADVISOR, Sighting.of(seen)) == Unchanged(seen)

    mark = audit_log.mark()
    for _ in range(3):
        assert await previewer.preview(intent, ADVISOR, Sighting.of(seen)) == Settled()
    assert requests(audit_log, mark, name) == []

    edited = await written(client, annotated(build(name), note="mine"), by="kubectl")
    assert isinstance(await previewer.preview(intent, ADVISOR, Sighting.of(edited)), Unchanged)
    assert "get" in requests(audit_log, mark, name)


async def test_drift_is_found_whatever_is_remembered(client: Client) -> None:
    intent = a_gadget(a_name(), size=1)
    previewer = Previewer(client, Memo(Random(1)), Time())
    seen = await written(client, intent, by=ADVISOR.name)
    await previewer.preview(intent, ADVISOR, Sighting.of(seen))
    drifted = await written(client, a_gadget(intent["metadata"]["name"], size=9), by="kubectl")
    for _ in range(2):
        assert isinstance(await previewer.preview(intent, ADVISOR, Sighting.of(drifted)), Conflicts)


async def test_a_change_to_come_is_asked_for_each_time(client: Client) -> None:
    name = a_name()
    previewer = Previewer(client, Memo(Random(1)), Time())
    seen = await written(client, a_gadget(name, size=1), by=ADVISOR.name)
    for _ in range(2):
        assert isinstance(await previewer.preview(a_gadget(name, size=2), ADVISOR, Sighting.of(seen)), Changes)


async def test_after_about_an_hour_the_server_is_asked_again(client: Client, audit_log: AuditLog) -> None:
    intent = a_gadget(a_name(), size=1)
    time = Time()
    previewer = Previewer(client, Memo(Random(1)), time)
    seen = await written(client, intent, by=ADVISOR.name)
    await previewer.preview(intent, ADVISOR, Sighting.of(seen))
    time.now = 2 * 3600.0
    mark = audit_log.mark()
    assert await previewer.preview(intent, ADVISOR, Sighting.of(seen)) == Unchanged(seen)
    assert requests(audit_log, mark, intent["metadata"]["name"]) == ["get", "patch"]


async def test_an_object_that_nobody_has_sighted_is_planned_as_new(client: Client, audit_log: AuditLog) -> None:
    intent = a_gadget(a_name(), size=1)
    previewer = Previewer(client, Memo(Random(1)), Time())
    mark = audit_log.mark()
    assert isinstance(await previewer.preview(intent, ADVISOR, None), Creates)
    assert requests(audit_log, mark, intent["metadata"]["name"]) == ["patch"]
    await written(client, intent, by="kubectl")
    assert isinstance(await previewer.preview(intent, ADVISOR, None), Stale)
