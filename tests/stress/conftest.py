"""Fixtures of the long tests."""

from collections.abc import Iterator

import pytest

from tests.olm.lifecycle_manager import LifecycleManager, a_lifecycle_manager


@pytest.fixture(scope="session")
def olm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LifecycleManager]:
    """The real Operator Lifecycle Manager with the catalog of tests.olm.catalog, on a control plane of its own."""
    with a_lifecycle_manager(tmp_path_factory.mktemp("olm")) as started:
        yield started
