import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import pytest
from aiohttp import web

from tests.audit import AuditLog
from tests.clients import a_client
from tests.eventually import eventually
from tests.gateway import Gateway, a_status
from tests.runtime.informers import running
from tests.widgets import GROUP, a_crd, a_new_kind, install_crd
from virt_steward.kube.backoff import RetryBackoff
from virt_steward.kube.client import Client
from virt_steward.kube.discovery import CUSTOM_RESOURCE_DEFINITION
from virt_steward.objects.identity import Key, Kind, Ref
from virt_steward.objects.paths import Pointer
from virt_steward.objects.schemafacts import SchemaFacts
from virt_steward.runtime.informer import Informer
from virt_steward.runtime.informers import SharedInformer
from virt_steward.runtime.kinds import DEFINITIONS
from virt_steward.runtime.schemas import Schemas
from virt_steward_demo.local.controlplane import ControlPlane

PROFILES = Pointer.parse("/spec/profiles")
MODE = Pointer.parse("/spec/mode")


def named(kind: Kind) -> str:
    return f"{kind.plural}.{GROUP}"


def a_crd_with_profiles(kind: Kind, *profiles: str) -> dict[str, Any]:
    """A definition whose spec.profiles takes these values."""
    definition = a_crd(kind.name, plural=kind.plural)
    items = {"type": "string", "enum": list(profiles)}
    spec = {"type": "object", "properties": {"profiles": {"type": "array", "items": items}}}
    schema = {"type": "object", "properties": {"spec": spec}}
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = schema
    return definition


@asynccontextmanager
async def followed(client: Client, *kinds: Kind) -> AsyncIterator[tuple[Schemas, list[str]]]:
    definitions = Informer(client, DEFINITIONS)
    wanted = {named(kind): (PROFILES, MODE) for kind in kinds}
    schemas, told = Schemas(client, SharedInformer([definitions]), wanted, RetryBackoff(Random(1))), list[str]()
    async with running(definitions), running(schemas):
        await asyncio.wait_for(schemas.settled(), 20)
        schemas.tell(told.append)
        yield schemas, told


def facts(*profiles: str) -> SchemaFacts:
    return SchemaFacts({PROFILES: profiles})


async def test_schemas_settle_with_all_facts(admin: Client) -> None:
    kind, absent = a_new_kind(), a_new_kind()
    await install_crd(admin, a_crd_with_profiles(kind, "A", "B"))
    async with followed(admin, kind, absent) as (schemas, _):
        assert schemas.facts(named(kind)) == facts("A", "B")
        assert schemas.facts(named(absent)) is None


async def test_schemas_follow_crd(admin: Client) -> None:
    kind = a_new_kind()
    async with followed(admin, kind) as (schemas, told):
        await install_crd(admin, a_crd_with_profiles(kind, "A"))
        assert await eventually(lambda: schemas.facts(named(kind)) == facts("A"))
        change = [{"op": "replace", "path": _ENUM, "value": ["A", "B"]}]
        await admin.json_patch(_definition(kind), change)
        assert await eventually(lambda: schemas.facts(named(kind)) == facts("A", "B"))
        await admin.delete(_definition(kind))
        assert await eventually(lambda: schemas.facts(named(kind)) is None)
        assert told == [named(kind)] * 3


async def test_schemas_fetch_only_changed_crd(admin: Client, audit_log: AuditLog) -> None:
    kind, other = a_new_kind(), a_new_kind()
    await install_crd(admin, a_crd_with_profiles(kind, "A"))
    async with followed(admin, kind) as (schemas, told):
        mark = audit_log.mark()
        await install_crd(admin, a_crd_with_profiles(other, "X"))
        await admin.merge_patch(_definition(kind), {"metadata": {"annotations": {"seen": "true"}}})
        assert await eventually(lambda: len(_fetched(audit_log, mark)) == 1)
        await asyncio.wait_for(schemas.settled(), 30)
        assert _fetched(audit_log, mark) == [named(kind)]
        assert told == [], "what changed is nothing that anybody asked for"


MALFORMED = {"spec": {"versions": [{"name": "v1", "served": True, "storage": True, "schema": 5}]}}


@pytest.mark.parametrize(
    "answer", [lambda: a_status(503, "ServiceUnavailable"), lambda: web.json_response(MALFORMED)], ids=["503", "schema"]
)
async def test_schemas_retry_unreadable_crd(
    control_plane: ControlPlane, admin: Client, gateway: Gateway, answer: Callable[[], web.StreamResponse]
) -> None:
    kind, troubled = a_new_kind(), a_new_kind()
    await install_crd(admin, a_crd_with_profiles(kind, "A"))
    await install_crd(admin, a_crd_with_profiles(troubled, "X"))
    healed = asyncio.Event()

    async def refuse(request: web.BaseRequest) -> web.StreamResponse | None:
        if request.path.endswith(f"/{named(troubled)}") and not healed.is_set():
            return answer()
        return None

    gateway.intercept = refuse
    async with a_client(control_plane, server=gateway.server) as client:
        definitions = Informer(client, DEFINITIONS)
        wanted = {named(kind): (PROFILES,), named(troubled): (PROFILES,)}
        schemas = Schemas(client, SharedInformer([definitions]), wanted, RetryBackoff(Random(1)))
        async with running(definitions), running(schemas):
            assert await eventually(lambda: schemas.facts(named(kind)) == facts("A"))
            settled = asyncio.ensure_future(schemas.settled())
            assert schemas.facts(named(troubled)) is None
            assert not settled.done()
            healed.set()
            await asyncio.wait_for(settled, 20)
            assert schemas.facts(named(troubled)) == facts("X")


_ENUM = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/profiles/items/enum"


def _definition(kind: Kind) -> Ref:
    return Ref(CUSTOM_RESOURCE_DEFINITION, Key("", named(kind)))


def _fetched(log: AuditLog, mark: Any) -> list[str]:
    requests = (request for request in log.since(mark) if request.resource == "customresourcedefinitions")
    return [request.name for request in requests if request.verb == "get"]
