import asyncio
from itertools import pairwise

from aiohttp import web
from structlog.testing import capture_logs

from tests.clients import a_client
from tests.eventually import eventually
from tests.gateway import Gateway, a_status, forwarded
from tests.runtime.informers import kinds_followed
from tests.widgets import GROUP, a_crd, a_new_kind
from virt_steward.kube.client import Client
from virt_steward.kube.discovery import CUSTOM_RESOURCE_DEFINITION
from virt_steward.objects.identity import Key, Kind, Ref
from virt_steward.objects.meta import Existing, Meta
from virt_steward.runtime.kinds import MIN_INTERVAL, Kinds
from virt_steward_demo.local.controlplane import ControlPlane


def serves(client: Client, kind: Kind) -> bool:
    return client.discovery.serves(GROUP, kind.plural)


async def test_kinds_refresh_discovery_on_crd_changes(admin: Client) -> None:
    kind = a_new_kind()
    async with kinds_followed(admin, admin.discovery):
        await admin.create(a_crd(kind.name))
        assert await eventually(lambda: serves(admin, kind))
        await admin.delete(Ref(CUSTOM_RESOURCE_DEFINITION, Key("", f"{kind.plural}.{GROUP}")))
        assert await eventually(lambda: not serves(admin, kind))


class Counted:
    """A discovery that serves nothing, and counts how often it is asked."""

    def __init__(self) -> None:
        self.asked_at: list[float] = []

    async def refresh(self) -> None:
        self.asked_at.append(asyncio.get_running_loop().time())

    def serves(self, _group: str, _plural: str) -> bool:
        return False


async def test_kinds_refresh_once_for_many_crds() -> None:
    discovery = Counted()
    kinds = Kinds(discovery)  # type: ignore[arg-type]
    running = asyncio.create_task(kinds.run())
    for number in range(100):
        kinds.handle(Key("", f"gadgets{number}.{GROUP}"), None, Existing(Meta(f"gadgets{number}")))
        await asyncio.sleep(0.005)
    assert await eventually(lambda: len(discovery.asked_at) >= 4)
    running.cancel()
    gaps = [later - earlier for earlier, later in pairwise(discovery.asked_at)]
    assert sum(gaps) >= MIN_INTERVAL * (len(gaps) - 1), "a busy machine may delay the first"


async def test_kinds_stop_during_crd_change() -> None:
    discovery = Counted()
    kinds = Kinds(discovery)  # type: ignore[arg-type]
    running = asyncio.create_task(kinds.run())
    kinds.handle(Key("", f"gadgets.{GROUP}"), None, Existing(Meta("gadgets")))
    assert await eventually(lambda: bool(discovery.asked_at))
    kinds.handle(Key("", f"gizmos.{GROUP}"), None, Existing(Meta("gizmos")))
    running.cancel()
    assert await eventually(running.cancelled)


async def test_kinds_retry_after_outage(gateway: Gateway, control_plane: ControlPlane, admin: Client) -> None:
    async def no_discovery(request: web.BaseRequest) -> web.StreamResponse | None:
        return a_status(503, "ServiceUnavailable") if request.path == "/apis" else None

    kind = a_new_kind()
    async with a_client(control_plane, server=gateway.server) as client:
        with capture_logs() as logged:
            async with kinds_followed(client, client.discovery):
                gateway.intercept = no_discovery
                await admin.create(a_crd(kind.name))
                assert await eventually(lambda: any(line["event"] == "discovery failed" for line in logged))
                gateway.intercept = forwarded
                assert await eventually(lambda: serves(client, kind))
