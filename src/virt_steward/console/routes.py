"""All routes of the console in one table: pages, the actions on their forms, and everything else."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from virt_steward.apis.installplanapprover import INSTALL_PLAN_APPROVER
from virt_steward.console import actions
from virt_steward.console.access import CORE_EVENT
from virt_steward.console.authentication import LINK_PATH
from virt_steward.console.handlers import RequestHandlers
from virt_steward.console.pages import activity, approvals, autopilot, inbox, overview, placement, profiles
from virt_steward.console.rendering import PAGES_BY_PATH, PageRoute
from virt_steward.controllers.approver.olm import SUBSCRIPTION
from virt_steward.kube.events import EVENT
from virt_steward.objects.corekinds import NODE
from virt_steward.runtime.access import LEASE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from aiohttp import web

    from virt_steward.console.handlers import Action

EVENTS = frozenset({EVENT, CORE_EVENT})
APPROVAL_KINDS = EVENTS | {INSTALL_PLAN_APPROVER, SUBSCRIPTION}
OBJECT_NAME = "[A-Za-z0-9.:-]+"


@dataclass(frozen=True, slots=True)
class ActionRoute:
    """A form of a page: its POST path is that of the page and the name of the action."""

    page: PageRoute
    name: str
    action: Action

    @property
    def path(self) -> str:
        return f"{self.page.path}/{self.name}"


@dataclass(frozen=True, slots=True)
class HandlerRoute:
    """Anything else."""

    method: str
    path: str
    handler: Callable[[RequestHandlers, web.Request], Awaitable[web.StreamResponse]]
    allow_head: bool = True


PROFILE = PageRoute("/profiles/{name}", "profiles", profiles.plan, EVENTS | {NODE})
ASSET = PageRoute("/autopilot/{name}", "autopilot", autopilot.asset, EVENTS | {NODE}, all_assets=True)
PLAN = PageRoute("/approvals/{namespace}/{name}", "approvals", approvals.plan, APPROVAL_KINDS)
MACHINE = PageRoute("/placement/machines/{namespace}/{name}", "placement", placement.machine, EVENTS)

ROUTES: tuple[PageRoute | ActionRoute | HandlerRoute, ...] = (
    PageRoute("/", "overview", overview.page, APPROVAL_KINDS | {NODE, LEASE}),
    PageRoute("/pools/{name}", "overview", overview.pool, frozenset({NODE})),
    PageRoute("/inbox", "inbox", inbox.page, APPROVAL_KINDS),
    PageRoute("/profiles", "profiles", profiles.page, EVENTS),
    PROFILE,
    ActionRoute(PROFILE, "approve", actions.approve_plan),
    ActionRoute(PROFILE, "reject", actions.reject_plan),
    ActionRoute(PROFILE, "stop-managing", actions.stop_managing),
    ActionRoute(PROFILE, "rollback", actions.roll_back),
    ActionRoute(PROFILE, "cancel-rollback", actions.cancel_rollback),
    ActionRoute(PROFILE, "activate", actions.activate),
    ActionRoute(PROFILE, "replan", actions.replan),
    PageRoute("/autopilot", "autopilot", autopilot.page, EVENTS, all_assets=True),
    ASSET,
    ActionRoute(ASSET, "resume", actions.resume_asset),
    ActionRoute(ASSET, "release", actions.release_asset),
    PageRoute("/approvals", "approvals", approvals.page, APPROVAL_KINDS),
    PLAN,
    ActionRoute(PLAN, "approve", actions.approve_install_plan),
    PageRoute("/placement", "placement", placement.page, EVENTS),
    MACHINE,
    ActionRoute(MACHINE, "choose", actions.choose_cluster),
    PageRoute("/placement/clusters/{name}", "placement", placement.cluster, EVENTS),
    PageRoute("/activity", "activity", activity.page, EVENTS),
    HandlerRoute("GET", "/live", RequestHandlers.stream, allow_head=False),
    HandlerRoute("GET", "/sign-in", RequestHandlers.sign_in_page),
    HandlerRoute("POST", "/sign-in", RequestHandlers.sign_in),
    HandlerRoute("GET", LINK_PATH, RequestHandlers.sign_in_by_link, allow_head=False),
    HandlerRoute("POST", "/sign-out", RequestHandlers.sign_out),
    HandlerRoute("POST", "/theme", RequestHandlers.set_theme),
    HandlerRoute("GET", "/static/{name}", RequestHandlers.static_file),
    HandlerRoute("GET", "/{path:.*}", RequestHandlers.not_found),
    HandlerRoute("POST", "/{path:.*}", RequestHandlers.not_found),
)


def add_routes(application: web.Application, handlers: RequestHandlers) -> None:
    """Register the table with the router of aiohttp."""
    application[PAGES_BY_PATH] = {route.path: route for route in ROUTES if isinstance(route, PageRoute)}
    router = application.router
    for route in ROUTES:
        path = _pattern(route.path)
        match route:
            case PageRoute():
                router.add_get(path, partial(handlers.page, route=route))
            case ActionRoute(page, _, action):
                router.add_post(path, partial(handlers.action, action=action, route=page))
            case HandlerRoute("GET", _, handler, allow_head):
                router.add_get(path, partial(handler, handlers), allow_head=allow_head)
            case HandlerRoute(method, _, handler):
                router.add_route(method, path, partial(handler, handlers))


def _pattern(path: str) -> str:
    """In a path, `{name}` matches the name of a Kubernetes object, and `{path:.*}` what it says."""
    return re.sub(r"{(\w+)}", rf"{{\1:{OBJECT_NAME}}}", path)
