"""Fixtures: replicas of a small controller on the real runtime."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.grants import Account
from tests.replicas import Replicas, some_replicas
from virt_steward.kube.client import Client
from virt_steward_demo.local.controlplane import ControlPlane


@pytest.fixture
def replicas(control_plane: ControlPlane, admin: Client, namespace: str, tmp_path: Path) -> Iterator[Replicas]:
    with some_replicas(control_plane, admin, namespace, tmp_path) as started:
        yield started


@pytest.fixture
async def ann(replicas: Replicas) -> Account:
    return await replicas.account("ann")
