"""The small definitions: the server takes them, and they hold what matters of the real ones."""

from contextlib import suppress
from typing import Any

import pytest

from tests.eventually import eventually
from virt_steward.kube.client import Client
from virt_steward.kube.errors import Invalid, NotServed
from virt_steward_demo.simulation.install import install, uninstall
from virt_steward_demo.simulation.kinds import NAMES, STUBS
from virt_steward_demo.simulation.kinds.addons import METAL_LB
from virt_steward_demo.simulation.kinds.descheduler import kube_descheduler


async def test_kinds_are_all_served(admin: Client) -> None:
    await install(admin, *NAMES)
    for stub in STUBS:
        served = await admin.discovery.resource(stub.kind)
        assert served.plural == stub.kind.plural
        assert served.namespaced is (stub.scope == "Namespaced")


@pytest.mark.parametrize(
    ("release", "load_aware"),
    [
        ("v510", []),
        ("v514", ["DevKubeVirtRelieveAndMigrate"]),
        ("v521", ["DevKubeVirtRelieveAndMigrate"]),
        ("v532", ["DevKubeVirtRelieveAndMigrate", "KubeVirtRelieveAndMigrate"]),
    ],
)
async def test_descheduler_release_accepts_only_its_profiles(
    admin: Client, namespace: str, release: str, load_aware: list[str]
) -> None:
    """Also when the definition of another release was there before."""
    await install(admin, kube_descheduler(release).definition())
    assert await eventually(lambda: _takes(admin, namespace, ["LongLifecycle", *load_aware]))


@pytest.mark.parametrize(
    ("release", "kept"),
    [
        ("v510", ({"total": 5}, {"devLowNodeUtilizationThresholds": "Medium"})),
        ("v532", ({"total": 5, "node": 2}, {"devEnableSoftTainter": True})),
    ],
)
async def test_descheduler_release_drops_unknown_field(
    admin: Client, namespace: str, release: str, kept: tuple[Any, Any]
) -> None:
    await install(admin, kube_descheduler(release).definition())
    assert await eventually(lambda: _keeps(admin, namespace, *kept))


async def test_descheduler_mode_defaults_to_predictive(admin: Client, namespace: str) -> None:
    await install(admin, "KubeDescheduler")
    assert (await admin.create(a_descheduler(namespace), dry_run=True))["spec"]["mode"] == "Predictive"


def a_descheduler(namespace: str, **spec: Any) -> dict[str, Any]:
    metadata = {"name": "cluster", "namespace": namespace}
    return {"apiVersion": "operator.openshift.io/v1", "kind": "KubeDescheduler", "metadata": metadata, "spec": spec}


async def _takes(client: Client, namespace: str, profiles: list[str]) -> bool:
    known = ("LongLifecycle", "DevKubeVirtRelieveAndMigrate", "KubeVirtRelieveAndMigrate", "NoSuchProfile")
    taken = []
    for profile in known:
        with suppress(Invalid):
            await client.create(a_descheduler(namespace, profiles=[profile]), dry_run=True)
            taken.append(profile)
    return taken == profiles


async def _keeps(client: Client, namespace: str, limits: dict[str, int], customizations: dict[str, Any]) -> bool:
    spec = {"evictionLimits": {"total": 5, "node": 2}, "profileCustomizations": {"devEnableSoftTainter": True}}
    kept = (await client.create(a_descheduler(namespace, **spec), dry_run=True))["spec"]
    return (kept["evictionLimits"], kept["profileCustomizations"]) == (limits, customizations)


async def test_kind_can_be_removed_and_installed_again(admin: Client, namespace: str) -> None:
    await install(admin, "MetalLB")
    metadata = {"name": "metallb", "namespace": namespace}
    await admin.create({"apiVersion": "metallb.io/v1beta1", "kind": "MetalLB", "metadata": metadata})
    await uninstall(admin, "MetalLB")
    with pytest.raises(NotServed):
        await admin.list(METAL_LB)
    await install(admin, "MetalLB")
    assert await admin.list(METAL_LB) == []
