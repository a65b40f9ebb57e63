"""Names of assets in the Go autopilot."""

from __future__ import annotations

import pytest

from virt_steward.catalog.aliases import ALIASES, current_name
from virt_steward.catalog.load import load


@pytest.mark.parametrize("name", ALIASES)
def test_aliases_name_assets(name: str) -> None:
    catalog = load()
    assert catalog.find(current_name(name))
    assert not catalog.find(name), "a name of ours never means another asset"
