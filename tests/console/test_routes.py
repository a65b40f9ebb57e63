"""The table of routes: paths that are links and forms elsewhere, and the router that finds pages for live updates."""

from collections import Counter

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from virt_steward.console.rendering import PageRequest, PageRoute, is_own_path
from virt_steward.console.routes import ROUTES, ActionRoute, HandlerRoute, add_routes

PATHS = {
    "/": {},
    "/inbox?q=a+b": {},
    "/pools/worker": {"name": "worker"},
    "/profiles": {},
    "/profiles/load-aware-rebalancing": {"name": "load-aware-rebalancing"},
    "/autopilot/swap-enable": {"name": "swap-enable"},
    "/approvals/operators/install-1": {"namespace": "operators", "name": "install-1"},
    "/placement/machines/team/web": {"namespace": "team", "name": "web"},
    "/placement/clusters/east": {"name": "east"},
    "/activity?controller=advisor": {},
}
ACTIONS = {
    "/profiles/{name}/approve",
    "/profiles/{name}/reject",
    "/profiles/{name}/stop-managing",
    "/profiles/{name}/rollback",
    "/profiles/{name}/cancel-rollback",
    "/profiles/{name}/activate",
    "/profiles/{name}/replan",
    "/autopilot/{name}/resume",
    "/autopilot/{name}/release",
    "/approvals/{namespace}/{name}/approve",
    "/placement/machines/{namespace}/{name}/choose",
}


@pytest.fixture
def application() -> web.Application:
    made = web.Application()
    add_routes(made, _NoHandlers())  # type: ignore[arg-type]
    return made


class _NoHandlers:
    async def page(self, request: web.Request, route: PageRoute) -> web.Response: ...

    async def action(self, request: web.Request, action: object, route: PageRoute) -> web.Response: ...


@pytest.mark.parametrize("address", PATHS)
async def test_resolve_finds_page(application: web.Application, address: str) -> None:
    found = await PageRequest.resolve(make_mocked_request("GET", "/live", app=application), address)
    assert found is not None
    assert found.match == PATHS[address]
    assert found.address == address


@pytest.mark.parametrize(
    "address",
    [
        "",
        "nothing",
        "/nothing",
        "//evil.example/",
        "/\\evil",
        "/profiles/a/b",
        "/profiles/%0d%0aX",
        "/sign-in",
        "/live",
    ],
)
async def test_resolve_finds_no_other_path(application: web.Application, address: str) -> None:
    assert await PageRequest.resolve(make_mocked_request("GET", "/live", app=application), address) is None


def test_action_paths_are_stable() -> None:
    assert {route.path for route in ROUTES if isinstance(route, ActionRoute)} == ACTIONS


def test_routes_are_unique() -> None:
    rows = Counter(
        (route.method if isinstance(route, HandlerRoute) else type(route).__name__, route.path) for route in ROUTES
    )
    assert max(rows.values()) == 1


def test_own_path_excludes_other_hosts() -> None:
    assert is_own_path("/approvals?q=x")
    assert not any(is_own_path(path) for path in ("", "approvals", "//evil.example", "/\\evil", "/a\nb"))
