import asyncio
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from tests.controllers.placement.conftest import SOON
from tests.eventually import eventually
from tests.fleet import PATIENCE, Members, a_spec, the_secret
from tests.grants import an_account
from tests.kube.kubeconfigs import SECRET, a_kubeconfig
from tests.proxy import FaultProxy
from tests.runtime.clocks import ManualClock
from virt_steward.apis.kubevirtconfig import KubevirtConfigSpec
from virt_steward.controllers.placement.fleet import (
    NOWHERE,
    ClusterReached,
    ClusterRejected,
)
from virt_steward.controllers.placement.observation import Unreachable, UnusableCluster
from virt_steward.controllers.placement.verdicts import PlacementReason
from virt_steward.kube.client import Client, Reader
from virt_steward.objects.identity import Key, Kind, Ref
from virt_steward.runtime.access import SECRET as SECRETS
from virt_steward.runtime.access import Access, Installation

VERSION = ClusterReached("v1.36.3")


def text(**parts: Any) -> str:
    return yaml.safe_dump(a_kubeconfig(**parts))


@pytest.mark.parametrize(
    ("kubeconfig", "reason", "says"),
    [
        pytest.param(
            None, PlacementReason.SECRET_KEY_MISSING, "has no key kubeconfig, or it is empty", id="without the key"
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
            "is longer than 128 KiB, which is too long for a kubeconfig",
            id="that takes long to read",
        ),
    ],
)
async def test_fleet_finds_secret_unusable(
    kubeconfig: str | None, reason: PlacementReason, says: str, members: Members, namespace: str
) -> None:
    await members.join("east", kubeconfig=kubeconfig)
    unusable = members.fleet.why_unusable("east")
    assert unusable is not None
    assert unusable.reason is reason
    assert f"Secret {namespace}/east of KubevirtConfig east" in unusable.message
    assert says in unusable.message
    assert SECRET not in unusable.message
    assert await members.fleet.probe("east") == unusable
    assert await members.fleet.ask("east", a_question) == Unreachable(unusable.message, reason)
    assert members.fleet.edition("east") == NOWHERE


async def a_question(reader: Reader) -> bytes:
    return await reader.raw("/version")


@pytest.mark.parametrize(
    ("spec", "reason", "says"),
    [
        pytest.param(None, PlacementReason.CONFIG_NOT_FOUND, "KubevirtConfig east not found", id="does not exist"),
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
            "Secret default/nowhere of KubevirtConfig east not found",
            id="names a Secret that does not exist",
        ),
    ],
)
async def test_fleet_finds_config_unusable(
    spec: KubevirtConfigSpec | None, reason: PlacementReason, says: str, members: Members
) -> None:
    members.fleet.follow("east", spec)
    await asyncio.wait_for(members.fleet.settled(), PATIENCE)
    unusable = members.fleet.why_unusable("east")
    assert unusable is not None
    assert unusable.reason is reason
    assert says in unusable.message


async def test_fleet_names_next_missing_part_of_config(members: Members) -> None:
    said = []
    for spec in (
        KubevirtConfigSpec(),
        KubevirtConfigSpec(kubeconfig_secret_ref="east"),
        a_spec("default", "east"),
    ):
        members.fleet.follow("east", spec)
        await asyncio.wait_for(members.fleet.settled(), PATIENCE)
        said.append(members.fleet.why_unusable("east"))
    reasons = [unusable.reason for unusable in said if unusable]
    assert reasons == [
        PlacementReason.CONFIG_INCOMPLETE,
        PlacementReason.CONFIG_INCOMPLETE,
        PlacementReason.SECRET_NOT_FOUND,
    ]
    assert said[0] != said[1]


async def test_probe_returns_version_and_is_measured(members: Members) -> None:
    await members.join("east")
    assert members.fleet.why_unusable("east") is None
    assert await members.fleet.probe("east") == VERSION
    assert members.fleet.last_failure("east") is None
    assert members.observed == [("east", True)]


async def test_probe_names_rejected_credentials_without_showing_them(members: Members, namespace: str) -> None:
    await members.join("east", kubeconfig=members.kubeconfig(token=SECRET))
    answer = await members.fleet.probe("east")
    assert isinstance(answer, ClusterRejected)
    assert answer.message.startswith("cluster east: unauthorized (401): token of user ")
    assert answer.reason is PlacementReason.UNAUTHORIZED
    assert f"Secret {namespace}/east" in answer.message
    assert SECRET not in answer.message
    assert members.observed == [("east", False)]


async def test_ask_has_one_message_for_a_cluster_that_is_down(
    members: Members, proxy: FaultProxy, clock: ManualClock
) -> None:
    await proxy.refuse()
    await members.join("east", server=proxy.server)
    probed = await members.fleet.probe("east")
    await clock.advance(60)
    asked = await members.fleet.ask("east", lambda reader: reader.list(Kind("", "Node")))
    assert probed == asked == members.fleet.last_failure("east")
    assert isinstance(probed, Unreachable)
    assert f"cluster east: unreachable: {proxy.server} unreachable: Connect" in probed.message


async def test_probe_times_out(members: Members, proxy: FaultProxy) -> None:
    await members.join("east", server=proxy.server)
    proxy.freeze()
    async with asyncio.timeout(10 * SOON):
        answer = await members.fleet.probe("east")
    assert answer == Unreachable(f"cluster east: unreachable: timed out after {SOON:g} s")


async def test_backoff_doubles_up_to_a_minute(members: Members, proxy: FaultProxy, clock: ManualClock) -> None:
    await proxy.refuse()
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
    assert members.fleet.last_failure("east") is None
    await proxy.refuse()
    await proxy.cut()
    assert isinstance(await members.fleet.probe("east"), Unreachable)
    await proxy.accept()
    await clock.advance(1)
    assert await members.fleet.probe("east") == VERSION


async def test_backoff_counts_concurrent_failures_once(members: Members, proxy: FaultProxy, clock: ManualClock) -> None:
    await proxy.refuse()
    await members.join("east", server=proxy.server)
    await asyncio.gather(*(members.fleet.probe("east") for _ in range(5)))
    assert members.observed == [("east", False)] * 5
    await proxy.accept()
    await clock.advance(1)
    assert await members.fleet.probe("east") == VERSION


async def test_ask_forbidden_causes_no_backoff(members: Members, admin: Client, namespace: str) -> None:
    account = await an_account(admin, Access("nobody", ()), Installation(namespace=namespace))
    await members.join("east", kubeconfig=members.kubeconfig(token=account.token))
    answer = await members.fleet.ask("east", lambda reader: reader.get(Ref(SECRETS, Key(namespace, "east"))))
    assert isinstance(answer, Unreachable)
    assert answer.message.startswith("cluster east: forbidden (403) to list virtualmachines.kubevirt.io")
    assert (answer.reason, members.fleet.last_failure("east")) == (PlacementReason.FORBIDDEN, None)
    assert await members.fleet.probe("east") == VERSION


async def test_fleet_shares_client_with_bounded_connections(members: Members, proxy: FaultProxy) -> None:
    await members.join("east", server=proxy.server)
    proxy.delay(0.01)
    edition = members.fleet.edition("east")
    answers = await asyncio.gather(*(members.fleet.probe("east") for _ in range(30)))
    assert answers == [VERSION] * 30
    assert proxy.accepted == 10
    assert members.fleet.edition("east") == edition


async def test_fleet_replaces_client_of_changed_kubeconfig(
    members: Members, admin: Client, namespace: str, proxy: FaultProxy
) -> None:
    await members.join("east", server=proxy.server)
    edition = members.fleet.edition("east")
    assert await members.fleet.probe("east") == VERSION
    await admin.merge_patch(the_secret(namespace, "east"), {"metadata": {"labels": {"a": "b"}}})
    await members.rotate("east", "garbage")
    assert await eventually(lambda: members.fleet.why_unusable("east") is not None)
    assert await eventually(lambda: proxy.open_connections == 0)
    await members.rotate("east", members.kubeconfig())
    assert await eventually(lambda: members.fleet.why_unusable("east") is None)
    assert members.fleet.edition("east") not in (edition, NOWHERE)
    assert await members.fleet.probe("east") == VERSION
    assert proxy.accepted == 1


async def test_fleet_drops_backoff_of_replaced_credentials(members: Members) -> None:
    await members.join("east", kubeconfig=members.kubeconfig(token=SECRET))
    assert isinstance(await members.fleet.probe("east"), ClusterRejected)
    edition = members.fleet.edition("east")
    await members.rotate("east", members.kubeconfig())
    assert await eventually(lambda: members.fleet.edition("east") != edition)
    assert await members.fleet.probe("east") == VERSION


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(lambda fleet: fleet.follow("east", None), id="is gone"),
        pytest.param(lambda fleet: fleet.follow("east", a_spec("default", "other")), id="names another Secret"),
    ],
)
async def test_fleet_closes_client_of_removed_config(
    end: Callable[[Any], None], members: Members, proxy: FaultProxy
) -> None:
    await members.join("east", server=proxy.server)
    assert await members.fleet.probe("east") == VERSION
    end(members.fleet)
    assert await eventually(lambda: proxy.open_connections == 0)
    assert isinstance(await members.fleet.probe("east"), UnusableCluster)


async def test_fleet_keeps_client_on_unrelated_change(members: Members, namespace: str) -> None:
    await members.join("east")
    edition = members.fleet.edition("east")
    heavier = KubevirtConfigSpec(kubeconfig_secret_ref="east", secret_namespace=namespace, weight=7)
    members.fleet.follow("east", heavier)
    assert members.fleet.edition("east") == edition


async def test_ask_leaves_no_connection_of_removed_config(members: Members, proxy: FaultProxy) -> None:
    await members.join("east", server=proxy.server)

    async def twice(reader: Reader) -> bytes:
        await reader.raw("/version")
        members.fleet.follow("east", None)
        assert await eventually(lambda: proxy.open_connections == 0)
        return await reader.raw("/version")

    answer = await members.fleet.ask("east", twice)
    assert answer == Unreachable(f"cluster east: unreachable: the connection to {proxy.server} is closed")
    assert (proxy.accepted, proxy.open_connections) == (1, 0)
    assert members.observed == [], "a cluster that is gone has no figures"
