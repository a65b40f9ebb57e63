from aiohttp import web
from structlog.testing import capture_logs

from tests.clients import a_client
from tests.eventually import soon
from tests.gateway import Gateway, a_status, forwarded
from tests.runtime.informers import kinds_followed
from tests.widgets import GROUP, a_definition, a_new_kind
from virt_steward.kube.client import Client
from virt_steward.kube.discovery import CUSTOM_RESOURCE_DEFINITION
from virt_steward.local.controlplane import ControlPlane
from virt_steward.objects.identity import Key, Kind, Ref


def serves(client: Client, kind: Kind) -> bool:
    return client.discovery.serves(GROUP, kind.plural)


async def test_discovery_follows_definitions_that_come_and_go(admin: Client) -> None:
    kind = a_new_kind()
    async with kinds_followed(admin, admin.discovery):
        await admin.create(a_definition(kind.name))
        assert await soon(lambda: serves(admin, kind))
        await admin.delete(Ref(CUSTOM_RESOURCE_DEFINITION, Key("", f"{kind.plural}.{GROUP}")))
        assert await soon(lambda: not serves(admin, kind))


async def test_an_outage_in_the_wrong_moment_does_not_leave_a_kind_unknown(
    gateway: Gateway, control_plane: ControlPlane, admin: Client
) -> None:
    async def no_discovery(request: web.BaseRequest) -> web.StreamResponse | None:
        return a_status(503, "ServiceUnavailable") if request.path == "/apis" else None

    kind = a_new_kind()
    async with a_client(control_plane, server=gateway.server) as client:
        with capture_logs() as logged:
            async with kinds_followed(client, client.discovery):
                gateway.intercept = no_discovery
                await admin.create(a_definition(kind.name))
                assert await soon(lambda: any(line["event"] == "discovery failed" for line in logged))
                gateway.intercept = forwarded
                assert await soon(lambda: serves(client, kind))
