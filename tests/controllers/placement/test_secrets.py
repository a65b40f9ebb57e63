import asyncio
import uuid

import pytest
from aiohttp import web

from tests.audit import AuditLog
from tests.clients import a_client
from tests.eventually import eventually
from tests.fleet import a_secret, at_work, the_secret
from tests.gateway import Gateway, a_status
from tests.grants import an_account
from tests.kube.kubeconfigs import SECRET, b64
from tests.proxy import FaultProxy
from tests.runtime.clocks import settle
from virt_steward.controllers.placement.secrets import (
    Content,
    SecretAbsent,
    SecretKeyMissing,
    SecretPresent,
    Secrets,
    SecretUnknown,
    SecretUnreadable,
)
from virt_steward.kube.client import Client
from virt_steward.objects.identity import Key
from virt_steward.runtime import access
from virt_steward.runtime.access import WATCH, Access, Grant, Installation
from virt_steward_demo.local.controlplane import ControlPlane

PATIENCE = 30


async def settled(watched: Secrets) -> None:
    await asyncio.wait_for(watched.settled(), PATIENCE)


@pytest.mark.parametrize(
    ("key", "kubeconfig", "content"),
    [
        pytest.param("kubeconfig", SECRET, SecretPresent(SECRET.encode()), id="present"),
        pytest.param("value", SECRET, SecretKeyMissing(), id="key missing"),
        pytest.param("kubeconfig", "", SecretKeyMissing(), id="key empty"),
        pytest.param("kubeconfig", None, SecretKeyMissing(), id="no data at all"),
    ],
)
async def test_a_secret_is_known_as(
    key: str, kubeconfig: str | None, content: Content, admin: Client, namespace: str
) -> None:
    await admin.create(a_secret(namespace, "east", kubeconfig, key=key))
    watched = Secrets(admin, changed=lambda _: None)
    watched.follow("east", Key(namespace, "east"))
    assert watched.content("east") == SecretUnknown()
    async with at_work(watched):
        await settled(watched)
        assert watched.content("east") == content


async def test_the_config_is_told_of_every_change_of_the_kubeconfig_and_of_nothing_else(
    admin: Client, namespace: str
) -> None:
    told: list[Content] = []
    watched = Secrets(admin, changed=lambda config: told.append(watched.content(config)))
    watched.follow("east", Key(namespace, "east"))
    async with at_work(watched):
        assert await eventually(lambda: told == [SecretAbsent()])
        await admin.create(a_secret(namespace, "east", "one"))
        await admin.create(a_secret(namespace, "neighbour", "other"))
        await admin.merge_patch(the_secret(namespace, "east"), {"metadata": {"labels": {"a": "b"}}})
        await admin.merge_patch(the_secret(namespace, "east"), {"data": {"more": b64("more")}})
        await admin.merge_patch(the_secret(namespace, "east"), {"data": {"kubeconfig": b64("two")}})
        await admin.delete(the_secret(namespace, "east"))
        assert await eventually(lambda: len(told) == 4)
    assert told == [SecretAbsent(), SecretPresent(b"one"), SecretPresent(b"two"), SecretAbsent()]


async def test_configs_that_name_the_same_secret_share_a_watch_until_the_last_has_gone(
    proxy: FaultProxy, control_plane: ControlPlane, admin: Client, namespace: str
) -> None:
    await admin.create(a_secret(namespace, "both", "one"))
    told: list[str] = []
    async with a_client(control_plane, server=proxy.server) as client:
        watched = Secrets(client, changed=told.append)
        watched.follow("east", Key(namespace, "both"))
        async with at_work(watched):
            await settled(watched)
            connections = proxy.open_connections
            watched.follow("west", Key(namespace, "both"))
            assert watched.content("west") == SecretPresent(b"one")
            told.clear()
            await admin.merge_patch(the_secret(namespace, "both"), {"data": {"kubeconfig": b64("two")}})
            assert await eventually(lambda: told == ["east", "west"])
            assert proxy.open_connections == connections
            watched.follow("east", None)
            assert watched.content("east") == SecretUnknown()
            assert watched.content("west") == SecretPresent(b"two")
            watched.follow("west", None)
            assert await eventually(lambda: proxy.open_connections == connections - 1)


async def test_a_config_that_names_another_secret_sees_that_one(admin: Client, namespace: str) -> None:
    for name in ("old", "new"):
        await admin.create(a_secret(namespace, name, name))
    watched = Secrets(admin, changed=lambda _: None)
    watched.follow("east", Key(namespace, "old"))
    async with at_work(watched):
        await settled(watched)
        watched.follow("east", Key(namespace, "new"))
        assert watched.content("east") == SecretUnknown()
        await settled(watched)
        assert watched.content("east") == SecretPresent(b"new")


async def test_nobody_waits_for_the_secret_of_a_config_that_has_gone(admin: Client, namespace: str) -> None:
    watched = Secrets(admin, changed=lambda _: None)
    watched.follow("east", Key(namespace, "east"))
    waiting = asyncio.create_task(watched.settled())
    await settle()
    assert not waiting.done()
    watched.follow("east", None)
    await asyncio.wait_for(waiting, PATIENCE)


async def test_secrets_are_asked_for_by_name_only(admin: Client, namespace: str, audit_log: AuditLog) -> None:
    begin = audit_log.mark()
    watched = Secrets(admin, changed=lambda _: None)
    watched.follow("east", Key(namespace, "east"))
    watched.follow("west", Key(namespace, "west"))
    async with at_work(watched):
        await settled(watched)
    asked = [one for one in audit_log.since(begin) if one.resource == "secrets" and one.user_agent == "tests"]
    assert {(one.namespace, one.name) for one in asked} == {(namespace, "east"), (namespace, "west")}
    assert all(f"fieldSelector=metadata.name%3D{one.name}" in one.uri for one in asked)


async def test_a_secret_that_may_not_be_read_is_not_taken_for_absent_and_found_once_it_may(
    control_plane: ControlPlane, admin: Client, namespace: str
) -> None:
    await admin.create(a_secret(namespace, "east", "one"))
    home = Installation(namespace=namespace)
    name = f"reader-{uuid.uuid4().hex[:8]}"
    account = await an_account(admin, Access(name, ()), home)
    told: list[str] = []
    async with a_client(control_plane, account.token) as client:
        watched = Secrets(client, changed=told.append)
        watched.follow("east", Key(namespace, "east"))
        async with at_work(watched):
            await settled(watched)
            content = watched.content("east")
            assert isinstance(content, SecretUnreadable)
            assert f"--secret-namespaces {namespace}'" in content.message
            assert await eventually(lambda: "east" in told)
            told.clear()
            grant = Grant(access.SECRET, WATCH, "to read a kubeconfig", where=namespace, names=("east",))
            await an_account(admin, Access(name, (grant,)), home)
            assert await eventually(lambda: "east" in told)
            assert await eventually(lambda: watched.content("east") == SecretPresent(b"one"))


async def test_a_secret_that_the_server_refuses_to_look_for_settles_as_unreadable(
    gateway: Gateway, control_plane: ControlPlane, namespace: str
) -> None:
    async def refuse(request: web.BaseRequest) -> web.StreamResponse | None:
        return a_status(400, "BadRequest", "no such selector") if request.path.endswith("/secrets") else None

    gateway.intercept = refuse
    async with a_client(control_plane, server=gateway.server) as client:
        watched = Secrets(client, changed=lambda _: None, patience=10 * PATIENCE)
        watched.follow("east", Key(namespace, "east"))
        async with at_work(watched):
            await settled(watched)
            content = watched.content("east")
            asked = sum(one.path.endswith("/secrets") for one in gateway.requests)
    assert isinstance(content, SecretUnreadable)
    assert "no such selector" in content.message
    assert asked == 2, "a streaming list and a paged one, and then a pause"


async def test_nobody_waits_for_ever_for_a_secret_that_is_never_answered(
    gateway: Gateway, control_plane: ControlPlane, admin: Client, namespace: str
) -> None:
    await admin.create(a_secret(namespace, "good", "one"))

    async def hang(request: web.BaseRequest) -> web.StreamResponse | None:
        return await asyncio.sleep(3600) if "bad" in request.query.get("fieldSelector", "") else None

    gateway.intercept = hang
    async with a_client(control_plane, server=gateway.server) as client:
        watched = Secrets(client, changed=lambda _: None, patience=0.1)
        watched.follow("bad", Key(namespace, "bad"))
        watched.follow("good", Key(namespace, "good"))
        async with at_work(watched):
            await settled(watched)
            assert watched.content("bad") == SecretUnknown()
            assert await eventually(lambda: watched.content("good") == SecretPresent(b"one"))


async def test_nothing_shows_what_a_secret_holds(admin: Client, namespace: str) -> None:
    await admin.create(a_secret(namespace, "east", SECRET))
    watched = Secrets(admin, changed=lambda _: None)
    watched.follow("east", Key(namespace, "east"))
    async with at_work(watched):
        await settled(watched)
        [watch] = watched._watches.values()
        [kept] = watch.informer.store
        assert watched.content("east") == SecretPresent(SECRET.encode())
        shown = f"{watched.content('east')!r} {kept!r}"
    assert SECRET not in shown
    assert b64(SECRET) not in shown
