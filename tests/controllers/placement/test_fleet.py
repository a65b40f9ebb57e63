import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import yaml
from aiohttp import web
from structlog.testing import capture_logs

from tests.eventually import soon
from tests.fleet import PATIENCE, Members, a_fleet, a_spec, the_secret
from tests.gateway import Gateway, a_status
from tests.grants import an_account
from tests.kube.kubeconfigs import SECRET, a_kubeconfig, b64
from tests.proxy import FaultProxy
from tests.runtime.clocks import ManualClock
from virt_steward.apis.kubevirtconfig import KubevirtConfigSpec
from virt_steward.controllers.placement.fleet import (
    LONGEST_ANSWER,
    NOWHERE,
    ClusterReached,
    ClusterRejected,
    FleetTimeouts,
)
from virt_steward.controllers.placement.observation import Unreachable, UnusableCluster
from virt_steward.controllers.placement.verdicts import PlacementReason
from virt_steward.kube.client import Client, Reader
from virt_steward.objects.identity import Key, Kind, Ref
from virt_steward.runtime.access import SECRET as SECRETS
from virt_steward.runtime.access import Access, Installation
from virt_steward_demo.local.controlplane import ControlPlane

SOON = 2.0
VERSION = ClusterReached("v1.36.3")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def members(
    control_plane: ControlPlane, admin: Client, namespace: str, clock: ManualClock
) -> AsyncIterator[Members]:
    async with a_fleet(control_plane, admin, namespace, clock=clock, limits=FleetTimeouts(timeout=SOON)) as started:
        yield started


def text(**parts: Any) -> str:
    return yaml.safe_dump(a_kubeconfig(**parts))


@pytest.mark.parametrize(
    ("kubeconfig", "reason", "says"),
    [
        pytest.param(
            None, PlacementReason.SECRET_KEY_MISSING, "nothing under the key kubeconfig", id="without the key"
        ),
        pytest.param("{[", PlacementReason.BAD_KUBECONFIG, "is not YAML", id="with garbage"),
        pytest.param(f"- {SECRET}", PlacementReason.BAD_KUBECONFIG, "is not a kubeconfig", id="with a list"),
        pytest.param(
            text(user={"exec": {"command": "sh"}}),
            PlacementReason.BAD_KUBECONFIG,
            "exec runs a command",
            id="with a command",
        ),
        pytest.param(
            text(user={"tokenFile": "token"}),
            PlacementReason.BAD_KUBECONFIG,
            "tokenFile reads a local file",
            id="with a file",
        ),
        pytest.param(
            text(cluster={"proxy-url": "http://p.example"}),
            PlacementReason.BAD_KUBECONFIG,
            "proxy-url sends requests through another server",
            id="with a proxy",
        ),
        pytest.param(
            text(cluster={"insecure-skip-tls-verify": True}),
            PlacementReason.BAD_KUBECONFIG,
            "insecure-skip-tls-verify trusts any server",
            id="that trusts anybody",
        ),
        pytest.param(
            "users: [" + "[]," * 60_000 + "]",
            PlacementReason.BAD_KUBECONFIG,
            "is longer than 128 KiB, which no kubeconfig is",
            id="that takes long to read",
        ),
    ],
)
async def test_a_cluster_is_unusable_by_a_secret(
    kubeconfig: str | None, reason: PlacementReason, says: str, members: Members, namespace: str
) -> None:
    await members.join("east", kubeconfig=kubeconfig)
    unusable = members.fleet.usable("east")
    assert unusable is not None
    assert unusable.reason is reason
    assert f"Secret {namespace}/east of KubevirtConfig east" in unusable.because
    assert says in unusable.because
    assert SECRET not in unusable.because
    assert await members.fleet.probe("east") == unusable
    assert await members.fleet.ask("east", a_question) == Unreachable(unusable.because, reason)
    assert members.fleet.edition("east") == NOWHERE


async def a_question(reader: Reader) -> bytes:
    return await reader.raw("/version")


@pytest.mark.parametrize(
    ("spec", "reason", "says"),
    [
        pytest.param(None, PlacementReason.CONFIG_NOT_FOUND, "there is no KubevirtConfig east", id="does not exist"),
        pytest.param(
            KubevirtConfigSpec(secret_namespace="default"),
            PlacementReason.CONFIG_INCOMPLETE,
            "set spec.kubeconfigSecretRef",
            id="names no Secret",
        ),
        pytest.param(
            KubevirtConfigSpec(kubeconfig_secret_ref="east"),
            PlacementReason.CONFIG_INCOMPLETE,
            "set spec.secretNamespace",
            id="names no namespace",
        ),
        pytest.param(
            a_spec("default", "nowhere"),
            PlacementReason.SECRET_NOT_FOUND,
            "Secret default/nowhere of KubevirtConfig east does not exist",
            id="names a Secret that does not exist",
        ),
    ],
)
async def test_a_cluster_is_unusable_whose_config(
    spec: KubevirtConfigSpec | None, reason: PlacementReason, says: str, members: Members
) -> None:
    members.fleet.follow("east", spec)
    await asyncio.wait_for(members.fleet.settled(), PATIENCE)
    unusable = members.fleet.usable("east")
    assert unusable is not None
    assert unusable.reason is reason
    assert says in unusable.because


async def test_a_config_that_is_completed_bit_by_bit_says_what_is_missing_next(members: Members) -> None:
    said = []
    for spec in (
        KubevirtConfigSpec(),
        KubevirtConfigSpec(kubeconfig_secret_ref="east"),
        a_spec("default", "east"),
    ):
        members.fleet.follow("east", spec)
        await asyncio.wait_for(members.fleet.settled(), PATIENCE)
        said.append(members.fleet.usable("east"))
    reasons = [unusable.reason for unusable in said if unusable]
    assert reasons == [
        PlacementReason.CONFIG_INCOMPLETE,
        PlacementReason.CONFIG_INCOMPLETE,
        PlacementReason.SECRET_NOT_FOUND,
    ]
    assert said[0] != said[1]


async def test_a_cluster_that_answers_tells_its_version_and_the_time_is_observed(members: Members) -> None:
    await members.join("east")
    assert members.fleet.usable("east") is None
    assert await members.fleet.probe("east") == VERSION
    assert members.fleet.silence("east") is None
    assert members.observed == [("east", True)]


async def test_credentials_that_are_not_accepted_are_named_and_never_shown(members: Members, namespace: str) -> None:
    await members.join("east", kubeconfig=members.kubeconfig(token=SECRET))
    answer = await members.fleet.probe("east")
    assert isinstance(answer, ClusterRejected)
    assert answer.because.startswith("cluster east does not accept our credentials: token of user ")
    assert answer.reason is PlacementReason.UNAUTHORIZED
    assert f"Secret {namespace}/east" in answer.because
    assert SECRET not in answer.because
    assert members.observed == [("east", False)]


async def test_a_cluster_that_is_down_has_one_sentence_for_every_question(
    members: Members, proxy: FaultProxy, clock: ManualClock
) -> None:
    proxy.refuse()
    await members.join("east", server=proxy.server)
    probed = await members.fleet.probe("east")
    await clock.advance(60)
    asked = await members.fleet.ask("east", lambda reader: reader.list(Kind("", "Node")))
    assert probed == asked == members.fleet.silence("east")
    assert isinstance(probed, Unreachable)
    assert f"cluster east cannot be asked: {proxy.server} unreachable: Connect" in probed.because


async def test_a_cluster_that_freezes_is_given_up_in_time(members: Members, proxy: FaultProxy) -> None:
    await members.join("east", server=proxy.server)
    proxy.freeze()
    async with asyncio.timeout(10 * SOON):
        answer = await members.fleet.probe("east")
    assert answer == Unreachable(f"cluster east does not answer within {SOON:g} s")


async def test_a_cluster_that_failed_is_left_in_peace_for_twice_as_long_each_time_up_to_a_minute(
    members: Members, proxy: FaultProxy, clock: ManualClock
) -> None:
    proxy.refuse()
    await members.join("east", server=proxy.server)
    for pause in (1, 2, 4, 8, 16, 32, 60, 60):
        members.observed.clear()
        failed = await members.fleet.probe("east")
        await clock.advance(pause - 0.1)
        assert await members.fleet.probe("east") == failed
        assert members.observed == [("east", False)]
        await clock.advance(0.1)
    await proxy.accept()
    assert await members.fleet.probe("east") == VERSION
    assert members.fleet.silence("east") is None
    proxy.refuse()
    await proxy.cut()
    assert isinstance(await members.fleet.probe("east"), Unreachable)
    await proxy.accept()
    await clock.advance(1)
    assert await members.fleet.probe("east") == VERSION


async def test_questions_that_fail_together_count_as_one_failure(
    members: Members, proxy: FaultProxy, clock: ManualClock
) -> None:
    proxy.refuse()
    await members.join("east", server=proxy.server)
    await asyncio.gather(*(members.fleet.probe("east") for _ in range(5)))
    assert members.observed == [("east", False)] * 5
    await proxy.accept()
    await clock.advance(1)
    assert await members.fleet.probe("east") == VERSION


async def test_a_question_that_is_forbidden_does_not_stop_others(
    members: Members, admin: Client, namespace: str
) -> None:
    account = await an_account(admin, Access("nobody", ()), Installation(namespace=namespace))
    await members.join("east", kubeconfig=members.kubeconfig(token=account.token))
    answer = await members.fleet.ask("east", lambda reader: reader.get(Ref(SECRETS, Key(namespace, "east"))))
    assert isinstance(answer, Unreachable)
    assert answer.because.startswith("cluster east does not let us look")
    assert (answer.reason, members.fleet.silence("east")) == (PlacementReason.FORBIDDEN, None)
    assert await members.fleet.probe("east") == VERSION


async def test_a_client_is_shared_and_its_connections_are_bounded(members: Members, proxy: FaultProxy) -> None:
    await members.join("east", server=proxy.server)
    proxy.delay(0.01)
    edition = members.fleet.edition("east")
    answers = await asyncio.gather(*(members.fleet.probe("east") for _ in range(30)))
    assert answers == [VERSION] * 30
    assert proxy.accepted == 10
    assert members.fleet.edition("east") == edition


async def test_a_changed_kubeconfig_makes_a_new_client_and_ends_the_old_one(
    members: Members, admin: Client, namespace: str, proxy: FaultProxy
) -> None:
    await members.join("east", server=proxy.server)
    edition = members.fleet.edition("east")
    assert await members.fleet.probe("east") == VERSION
    await admin.merge_patch(the_secret(namespace, "east"), {"metadata": {"labels": {"a": "b"}}})
    await members.rotate("east", "garbage")
    assert await soon(lambda: members.fleet.usable("east") is not None)
    assert await soon(lambda: proxy.open_connections == 0)
    await members.rotate("east", members.kubeconfig())
    assert await soon(lambda: members.fleet.usable("east") is None)
    assert members.fleet.edition("east") not in (edition, NOWHERE)
    assert await members.fleet.probe("east") == VERSION
    assert proxy.accepted == 1


async def test_credentials_that_failed_are_not_waited_for_once_they_are_replaced(members: Members) -> None:
    await members.join("east", kubeconfig=members.kubeconfig(token=SECRET))
    assert isinstance(await members.fleet.probe("east"), ClusterRejected)
    edition = members.fleet.edition("east")
    await members.rotate("east", members.kubeconfig())
    assert await soon(lambda: members.fleet.edition("east") != edition)
    assert await members.fleet.probe("east") == VERSION


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(lambda fleet: fleet.follow("east", None), id="is gone"),
        pytest.param(lambda fleet: fleet.follow("east", a_spec("default", "other")), id="names another Secret"),
    ],
)
async def test_the_client_goes_when_its_config(end: Callable[[Any], None], members: Members, proxy: FaultProxy) -> None:
    await members.join("east", server=proxy.server)
    assert await members.fleet.probe("east") == VERSION
    end(members.fleet)
    assert await soon(lambda: proxy.open_connections == 0)
    assert isinstance(await members.fleet.probe("east"), UnusableCluster)


async def test_a_change_that_does_not_concern_the_secret_keeps_the_client(members: Members, namespace: str) -> None:
    await members.join("east")
    edition = members.fleet.edition("east")
    heavier = KubevirtConfigSpec(kubeconfig_secret_ref="east", secret_namespace=namespace, weight=7)
    members.fleet.follow("east", heavier)
    assert members.fleet.edition("east") == edition


async def test_a_question_under_way_leaves_no_connection_behind_when_its_config_goes(
    members: Members, proxy: FaultProxy
) -> None:
    await members.join("east", server=proxy.server)

    async def twice(reader: Reader) -> bytes:
        await reader.raw("/version")
        members.fleet.follow("east", None)
        assert await soon(lambda: proxy.open_connections == 0)
        return await reader.raw("/version")

    answer = await members.fleet.ask("east", twice)
    assert answer == Unreachable(f"cluster east cannot be asked: the connection to {proxy.server} is closed")
    assert (proxy.accepted, proxy.open_connections) == (1, 0)
    assert members.observed == [], "a cluster that is gone has no figures"


@pytest.mark.parametrize(
    ("code", "reason"),
    [pytest.param(400, "BadRequest", id="refuses"), pytest.param(500, "InternalError", id="fails")],
)
async def test_a_server_cannot_make_us_say_our_token_when_it(
    code: int, reason: str, members: Members, gateway: Gateway
) -> None:
    async def echo(request: web.BaseRequest) -> web.StreamResponse:
        return a_status(code, reason, f"you sent {request.headers['Authorization']}")

    gateway.intercept = echo
    await members.join("east", kubeconfig=members.kubeconfig(gateway.secure_server, SECRET))
    answer = await members.fleet.probe("east")
    assert isinstance(answer, Unreachable)
    assert answer.because.startswith("cluster east ")
    assert SECRET not in answer.because


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("<html>", id="no JSON"),
        pytest.param('{"gitVersion": 5}', id="of the wrong type"),
        pytest.param('{"more":' * 5000, id="nested without end"),
    ],
)
async def test_an_answer_counts_as_a_failure_that_is(body: str, members: Members, gateway: Gateway) -> None:
    async def nonsense(_request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(text=body)

    gateway.intercept = nonsense
    await members.join("east", server=gateway.secure_server)
    assert await members.fleet.probe("east") == Unreachable("cluster east gives an answer that makes no sense")


async def test_nothing_that_is_written_or_shown_has_secrets_in_it(
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
        proxy.refuse()
        shown: list[object] = [await members.fleet.probe(name) for name in ("good", "down", "wrong", "broken")]
        shown += [members.fleet.silence(name) for name in ("good", "down", "wrong", "broken")]
        shown += members.fleet._ways.values()
    output = f"{logged} {shown} {caplog.text} {capsys.readouterr()}"
    assert "cluster down cannot be asked" in output
    for secret in (SECRET, b64(SECRET), control_plane.token, b64(control_plane.token)):
        assert secret not in output


async def test_all_connections_are_closed_when_the_fleet_stops(
    control_plane: ControlPlane, admin: Client, namespace: str, proxy: FaultProxy
) -> None:
    async with a_fleet(control_plane, admin, namespace) as members:
        await members.join("east", server=proxy.server)
        assert await members.fleet.probe("east") == VERSION
        assert proxy.open_connections == 1
    assert not members.fleet._farewells
    assert isinstance(await members.fleet.ask("east", a_question), Unreachable), "and none is opened any more"
    assert await soon(lambda: proxy.open_connections == 0)


@pytest.mark.parametrize("code", [200, 500])
async def test_a_server_cannot_fill_our_memory_with_an_endless_answer(
    code: int, control_plane: ControlPlane, admin: Client, namespace: str, gateway: Gateway
) -> None:
    sent = 0

    async def babbles(request: web.BaseRequest) -> web.StreamResponse | None:
        nonlocal sent
        response = web.StreamResponse(status=code)
        await response.prepare(request)
        while sent < 4 * LONGEST_ANSWER:
            await response.write(bytes(1024 * 1024))
            sent += 1024 * 1024
        return response

    gateway.intercept = babbles
    async with a_fleet(control_plane, admin, namespace, limits=FleetTimeouts(timeout=PATIENCE)) as members:
        await members.join("east", server=gateway.secure_server)
        assert isinstance(await members.fleet.probe("east"), Unreachable)
    assert sent < 2 * LONGEST_ANSWER
