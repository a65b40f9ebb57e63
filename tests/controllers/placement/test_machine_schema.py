"""Whether the Machine CRD has status conditions, read from a real CRD."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.audit import AuditLog
from tests.eventually import eventually
from tests.machines import a_definition_of_machines
from tests.widgets import install_crd
from virt_steward.controllers.placement.act import MACHINE_CRD, MachineSchema
from virt_steward.kube.client import Client
from virt_steward.kube.discovery import CUSTOM_RESOURCE_DEFINITION
from virt_steward.objects.identity import Ref
from virt_steward.objects.meta import Existing
from virt_steward.runtime.store import Store

THE_DEFINITION = Ref(CUSTOM_RESOURCE_DEFINITION, MACHINE_CRD)
ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


class Known:
    """What a watch of definitions would know, and a schema that relies on it."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._definitions: Store[Existing] = Store({})
        self.schema = MachineSchema(client, self._definitions)

    async def look(self) -> None:
        self._definitions.put(await self._client.get(THE_DEFINITION, Existing))

    async def serve(self, **version: Any) -> None:
        """Serve the version in another form."""
        served = {**a_definition_of_machines()["spec"]["versions"][0], **version}
        await self._client.merge_patch(THE_DEFINITION, {"spec": {"versions": [served]}})
        await self.look()


@pytest.fixture
async def known(admin: Client) -> AsyncIterator[Known]:
    await install_crd(admin, a_definition_of_machines())
    known = Known(admin)
    await known.look()
    yield known
    await known.serve()
    assert await eventually(known.schema.has_conditions)


def a_schema(root: dict[str, Any]) -> dict[str, Any]:
    return {"schema": {"openAPIV3Schema": root}}


WITHOUT = a_definition_of_machines(conditions=False)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


@pytest.mark.parametrize(
    ("version", "keeps"),
    [
        pytest.param({}, True, id="has-conditions"),
        pytest.param(a_schema(WITHOUT), False, id="has-none"),
        pytest.param(a_schema({"type": "object"}), False, id="has-no-status"),
        pytest.param(a_schema({"type": "object", "properties": {"status": ANYTHING}}), True, id="takes-any-status"),
        pytest.param(a_schema(ANYTHING), True, id="takes-anything"),
        pytest.param(a_schema({**WITHOUT, **ANYTHING}), False, id="takes-anything-else"),
        pytest.param({"subresources": {}}, False, id="has-no-status-of-its-own"),
    ],
)
async def test_a_condition_is_kept_or_not_by_a_definition_that(
    known: Known, version: dict[str, Any], *, keeps: bool
) -> None:
    await known.serve(**version)
    assert await known.schema.has_conditions() is keeps


async def test_the_definition_is_read_once_until_it_changes(known: Known, audit_log: AuditLog) -> None:
    mark = audit_log.mark()
    for _ in range(3):
        assert await known.schema.has_conditions()
    asked = [one for one in audit_log.since(mark) if one.user_agent == "tests" and one.name == MACHINE_CRD.name]
    assert [one.verb for one in asked] == ["get"]


async def test_where_there_is_no_definition_nothing_is_kept(admin: Client) -> None:
    await install_crd(admin, a_definition_of_machines())
    await admin.delete(THE_DEFINITION)
    assert await eventually(lambda: keeps_nothing(admin))
    await install_crd(admin, a_definition_of_machines())


async def keeps_nothing(client: Client) -> bool:
    return not await MachineSchema(client, Store({})).has_conditions()
