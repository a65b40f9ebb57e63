"""What a cluster's API server can do to the fleet: leak a token, answer nonsense, or never end."""

import pytest
from aiohttp import web
from structlog.testing import capture_logs

from tests.controllers.placement.test_fleet import VERSION, a_question
from tests.eventually import eventually
from tests.fleet import Members, a_fleet
from tests.gateway import Gateway, a_status
from tests.kube.kubeconfigs import SECRET, b64
from tests.proxy import FaultProxy
from virt_steward.controllers.placement.messages import INVALID_ANSWER
from virt_steward.controllers.placement.observation import Unreachable
from virt_steward.controllers.placement.verdicts import PlacementReason
from virt_steward.kube.client import Client
from virt_steward_demo.local.controlplane import ControlPlane


@pytest.mark.parametrize(
    ("code", "reason"),
    [pytest.param(400, "BadRequest", id="refuses"), pytest.param(500, "InternalError", id="fails")],
)
async def test_probe_never_repeats_our_token(code: int, reason: str, members: Members, gateway: Gateway) -> None:
    async def echo(request: web.BaseRequest) -> web.StreamResponse:
        return a_status(code, reason, f"you sent {request.headers['Authorization']}")

    gateway.intercept = echo
    await members.join("east", kubeconfig=members.kubeconfig(gateway.secure_server, SECRET))
    answer = await members.fleet.probe("east")
    assert isinstance(answer, Unreachable)
    assert answer.message.startswith("cluster east: ")
    assert SECRET not in answer.message


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("<html>", id="no JSON"),
        pytest.param('{"gitVersion": 5}', id="of the wrong type"),
        pytest.param('{"more":' * 5000, id="nested without end"),
    ],
)
async def test_probe_reports_invalid_answer(body: str, members: Members, gateway: Gateway) -> None:
    async def nonsense(_request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(text=body)

    gateway.intercept = nonsense
    await members.join("east", server=gateway.secure_server)
    assert await members.fleet.probe("east") == Unreachable(
        f"cluster east: {INVALID_ANSWER}", PlacementReason.MISBEHAVES
    )


async def test_fleet_shows_no_secrets(
    members: Members,
    control_plane: ControlPlane,
    proxy: FaultProxy,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with capture_logs() as logged:
        await members.join("good")
        await members.join("down", server=proxy.server)
        await members.join("wrong", kubeconfig=members.kubeconfig(token=SECRET))
        await members.join("broken", kubeconfig=f"users: [{SECRET}")
        await proxy.refuse()
        shown: list[object] = [await members.fleet.probe(name) for name in ("good", "down", "wrong", "broken")]
        shown += [members.fleet.last_failure(name) for name in ("good", "down", "wrong", "broken")]
        shown += members.fleet._clients.values()
    output = f"{logged} {shown} {caplog.text} {capsys.readouterr()}"
    assert "cluster down: unreachable: " in output
    for secret in (SECRET, b64(SECRET), control_plane.token, b64(control_plane.token)):
        assert secret not in output


async def test_fleet_closes_all_connections_at_the_end(
    control_plane: ControlPlane, admin: Client, namespace: str, proxy: FaultProxy
) -> None:
    async with a_fleet(control_plane, admin, namespace) as members:
        await members.join("east", server=proxy.server)
        assert await members.fleet.probe("east") == VERSION
        assert proxy.open_connections == 1
    assert not members.fleet._closing
    assert isinstance(await members.fleet.ask("east", a_question), Unreachable), "and none is opened any more"
    assert await eventually(lambda: proxy.open_connections == 0)
