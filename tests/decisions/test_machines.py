"""The choice of a cluster for a Machine."""

from datetime import UTC, datetime

import pytest

from tests.console.objects import define_all, put
from tests.machines import a_config, a_machine, cluster_of, the_config
from virt_steward.controllers.placement.observation import CONFIG_ANNOTATION
from virt_steward.decisions.machines import choose_cluster
from virt_steward.decisions.outcomes import Decided, NotDecided
from virt_steward.decisions.signatures import Signature
from virt_steward.kube.client import Client
from virt_steward.objects.identity import Key

BY_ADMIN = Signature("admin", "it has a GPU", datetime(2026, 6, 1, tzinfo=UTC))


@pytest.fixture
async def cluster(admin: Client, namespace: str) -> str:
    await define_all(admin)
    name = f"east-{namespace}"
    await put(admin, a_config(name, Key(namespace, "none")))
    return name


async def test_choose_cluster_places_the_machine(admin: Client, namespace: str, cluster: str) -> None:
    await admin.create(a_machine(namespace, "web"))
    assert isinstance(await choose_cluster(admin, Key(namespace, "web"), cluster, BY_ADMIN), Decided)
    assert await cluster_of(admin, namespace, "web") == cluster
    await admin.delete(the_config(cluster))


@pytest.mark.parametrize("name", ["", "no-such-cluster"])
async def test_choose_cluster_refuses_unknown_clusters(admin: Client, namespace: str, cluster: str, name: str) -> None:
    await admin.create(a_machine(namespace, "web"))
    assert isinstance(await choose_cluster(admin, Key(namespace, "web"), name, BY_ADMIN), NotDecided)
    assert await cluster_of(admin, namespace, "web") == ""
    await admin.delete(the_config(cluster))


async def test_choose_cluster_keeps_a_recorded_cluster(admin: Client, namespace: str, cluster: str) -> None:
    await admin.create(a_machine(namespace, "web", annotations={CONFIG_ANNOTATION: "west"}))
    assert isinstance(await choose_cluster(admin, Key(namespace, "web"), cluster, BY_ADMIN), NotDecided)
    assert await cluster_of(admin, namespace, "web") == "west"
    await admin.delete(the_config(cluster))
