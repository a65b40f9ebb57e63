"""Fixtures of the long tests."""

from collections.abc import Iterator

import pytest

from tests.cluster import a_control_plane
from tests.olm.lifecycle_manager import LifecycleManager, a_lifecycle_manager
from virt_steward_demo.local.controlplane import ControlPlane


@pytest.fixture
def empty_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane of the test's own, for those who count what is there."""
    with a_control_plane(tmp_path_factory.mktemp("empty")) as started:
        yield started


@pytest.fixture(scope="session")
def olm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LifecycleManager]:
    """The real Operator Lifecycle Manager with the catalog of tests.olm.catalog, on a control plane of its own."""
    with a_lifecycle_manager(tmp_path_factory.mktemp("olm")) as started:
        yield started
