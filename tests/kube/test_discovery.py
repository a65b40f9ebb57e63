import asyncio
from contextlib import suppress

import pytest
from aiohttp import web

from tests.audit import AuditLog
from tests.clients import a_client
from tests.eventually import eventually
from tests.gateway import Gateway
from tests.widgets import GROUP, WIDGET, a_crd, a_new_kind, a_version, install_crd
from virt_steward.kube.client import Client
from virt_steward.kube.discovery import CUSTOM_RESOURCE_DEFINITION, Discovery
from virt_steward.kube.errors import NotServed, Unavailable
from virt_steward.objects.identity import Key, Kind, Ref
from virt_steward_demo.local.controlplane import ControlPlane

CONFIG_MAP = Kind("", "ConfigMap")


def the_definition(plural: str) -> Ref:
    return Ref(CUSTOM_RESOURCE_DEFINITION, Key("", f"{plural}.{GROUP}"))


async def refreshed_until(discovery: Discovery, kind: Kind, version: str | None) -> bool:
    """Whether the server comes to prefer that version; None stands for not serving the kind."""

    async def holds() -> bool:
        await discovery.refresh()
        try:
            return (await discovery.resource(kind)).version == version
        except NotServed:
            return version is None

    return await eventually(holds)


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        pytest.param(CONFIG_MAP, "/api/v1/namespaces/a/configmaps/b", id="of the core group"),
        pytest.param(Kind("", "Namespace"), "/api/v1/namespaces/b", id="without namespaces"),
        pytest.param(Kind("apps", "Deployment"), "/apis/apps/v1/namespaces/a/deployments/b", id="of a group"),
        pytest.param(
            Kind("networking.k8s.io", "NetworkPolicy"),
            "/apis/networking.k8s.io/v1/namespaces/a/networkpolicies/b",
            id="with an irregular plural",
        ),
        pytest.param(Kind("", "Endpoints"), "/api/v1/namespaces/a/endpoints/b", id="that is a plural itself"),
        pytest.param(
            Kind("autoscaling", "HorizontalPodAutoscaler"),
            "/apis/autoscaling/v2/namespaces/a/horizontalpodautoscalers/b",
            id="in several versions, of which one is preferred",
        ),
    ],
)
async def test_discovery_finds_path_of_kind(kind: Kind, path: str, admin: Client) -> None:
    assert (await admin.discovery.resource(kind)).path("a", "b") == path


async def test_discovery_finds_older_version(admin: Client) -> None:
    autoscaler = Kind("autoscaling", "HorizontalPodAutoscaler")
    assert (await admin.discovery.resource(autoscaler, "v1")).api_version == "autoscaling/v1"
    with pytest.raises(NotServed, match=r"HorizontalPodAutoscaler.autoscaling in version v7"):
        await admin.discovery.resource(autoscaler, "v7")


async def test_discovery_lists_subresources(admin: Client) -> None:
    deployment = await admin.discovery.resource(Kind("apps", "Deployment"))
    assert deployment.subresources == {"scale", "status"}
    assert deployment.path("a", "b", "status").endswith("/deployments/b/status")
    assert (await admin.discovery.resource(CONFIG_MAP)).subresources == frozenset()


async def test_discovery_fetches_once_for_many_callers(admin: Client, audit_log: AuditLog) -> None:
    mark = audit_log.mark()
    await asyncio.gather(*(admin.discovery.resource(CONFIG_MAP) for _ in range(20)))
    uris = [request.uri for request in audit_log.since(mark) if request.user == "admin"]
    assert uris == ["/api", "/apis"]


async def test_discovery_follows_crd_changes(admin: Client) -> None:
    kind = a_new_kind()
    odd = f"{kind.plural[:-1]}kinder"
    definition = a_crd(kind.name, plural=odd, versions=("v1alpha1",), scope="Cluster")
    with pytest.raises(NotServed):
        await admin.discovery.resource(kind)
    await admin.create(definition)
    assert await refreshed_until(admin.discovery, kind, "v1alpha1")
    resource = await admin.discovery.resource(kind)
    assert (resource.plural, resource.namespaced, resource.subresources) == (odd, False, frozenset({"status"}))
    assert resource.path("ignored", "x") == f"/apis/{GROUP}/v1alpha1/{odd}/x"
    assert admin.discovery.serves(GROUP, odd)

    both = [a_version("v1alpha1", stored=True), a_version("v1")]
    await admin.merge_patch(the_definition(odd), {"spec": {"versions": both}})
    assert await refreshed_until(admin.discovery, kind, "v1")
    assert (await admin.discovery.resource(kind, "v1alpha1")).version == "v1alpha1"

    await admin.delete(the_definition(odd))
    assert await refreshed_until(admin.discovery, kind, None)
    assert not admin.discovery.serves(GROUP, odd)


async def test_changed_returns_only_on_change(admin: Client) -> None:
    await admin.discovery.refresh()
    waiting = asyncio.ensure_future(admin.discovery.changed())
    await admin.discovery.refresh()
    admin.discovery.forget()
    await admin.discovery.resource(CONFIG_MAP)
    assert not waiting.done()
    kind = a_new_kind()
    await admin.create(a_crd(kind.name))
    assert await refreshed_until(admin.discovery, kind, "v1")
    await asyncio.wait_for(waiting, 30)


async def test_discovery_refreshes_after_page_not_found(admin: Client) -> None:
    kind = a_new_kind()
    await install_crd(admin, a_crd(kind.name))
    await admin.delete(the_definition(kind.plural))

    async def gone() -> bool:
        with suppress(NotServed):
            await admin.list(kind)
        try:
            await admin.discovery.resource(kind)
        except NotServed:
            return True
        return False

    assert await eventually(gone)


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        pytest.param("<html>Log in</html>", "invalid answer", id="a page"),
        pytest.param('{"kind": "APIGroupList", "groups": []}', "1.27 or newer", id="an old server's answer"),
    ],
)
async def test_discovery_fails_on_invalid_answer(
    body: str, complaint: str, gateway: Gateway, control_plane: ControlPlane
) -> None:
    async def strange(_: web.BaseRequest) -> web.StreamResponse:
        return web.Response(text=body)

    gateway.intercept = strange
    async with a_client(control_plane, server=gateway.server) as client:
        with pytest.raises(Unavailable, match=complaint):
            await client.discovery.resource(WIDGET)
