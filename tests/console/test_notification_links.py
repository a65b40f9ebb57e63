"""Notifications link to pages that exist."""

import re

import pytest

from virt_steward.console.routes import ROUTES, PageRoute

PAGES = [re.compile(re.sub(r"{\w+}", "[^/]+", route.path)) for route in ROUTES if isinstance(route, PageRoute)]


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/autopilot",
        "/autopilot/swap-enable",
        "/profiles/load-aware-rebalancing",
        "/approvals",
        "/approvals/shop/install-1",
        "/placement/machines/shop/db",
        "/placement/clusters/east",
    ],
)
def test_console_has_page_of_notification(path: str) -> None:
    assert any(pattern.fullmatch(path) for pattern in PAGES)
