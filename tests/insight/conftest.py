"""Fixtures for questions about operators."""

import pytest

from tests.controllers.approver.lifecycle import define_all
from virt_steward.kube.client import Client


@pytest.fixture
async def operators(admin: Client, namespace: str) -> str:
    """A namespace that may hold plans, Subscriptions and approvers."""
    await define_all(admin)
    return namespace
