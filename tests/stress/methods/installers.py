"""What an admin does to install virt-steward, by each of the methods of docs/howto/install.md."""

import json
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests import helm
from tests.cli.commands import steward
from tests.helm import MONITORS, PERSES, POLICIES, RULES
from tests.olm.catalog import BUNDLE, STEWARD
from tests.olm.namespaces import OperatorNamespace
from virt_steward.kube.client import Client
from virt_steward.kube.errors import NotServed
from virt_steward.objects.corekinds import NAMESPACE as NAMESPACE_KIND
from virt_steward.objects.identity import Key, Kind, Ref
from virt_steward.packaging.monitoring import CLUSTER_MONITORING
from virt_steward.runtime.access import NAMESPACE
from virt_steward_demo.local.controlplane import ControlPlane
from virt_steward_demo.simulation.install import install, make_namespace

Object = dict[str, Any]

DEPLOY = Path(__file__).parents[3] / "deploy"
RELEASE = {
    "annotations": {"meta.helm.sh/release-name": "virt-steward", "meta.helm.sh/release-namespace": NAMESPACE},
    "labels": {"app.kubernetes.io/managed-by": "Helm"},
}


@dataclass(frozen=True, slots=True)
class Admin:
    """Who installs."""

    client: Client
    control_plane: ControlPlane

    async def apply(self, objects: list[Object]) -> None:
        """Apply objects: CRDs first, until they are served."""
        definitions = [obj for obj in objects if obj["kind"] == "CustomResourceDefinition"]
        await install(self.client, *definitions)
        for obj in objects:
            if obj not in definitions:
                await self.client.apply(obj, manager="kubectl", force=True)

    async def apply_output(self, *command: str) -> None:
        """Carry out `virt-steward COMMAND | kubectl apply -f -`."""
        ended = await steward(*command, kubeconfig=self.control_plane.kubeconfig)
        assert ended.code == 0, ended.stderr
        await self.apply(list(yaml.safe_load_all(ended.stdout)))

    async def let_placement_read_secrets(self) -> None:
        await self.apply_output("rbac", "--controllers", "placement", "--secret-namespaces", NAMESPACE)


async def by_manifests(admin: Admin) -> None:
    await admin.apply_output("manifests", "--monitoring", "all")
    await admin.let_placement_read_secrets()


async def by_kustomize(admin: Admin) -> None:
    for folder in ("openshift", "monitoring/perses"):
        await admin.apply(list(kustomized(DEPLOY / folder)))
    await admin.let_placement_read_secrets()


def kustomized(folder: Path) -> Iterator[Object]:
    """What kustomize makes of a folder that only lists resources, which may be folders of the same kind."""
    listing = yaml.safe_load((folder / "kustomization.yaml").read_text())
    assert listing.keys() == {"apiVersion", "kind", "resources"}
    for name in listing["resources"]:
        path = folder / name
        yield from kustomized(path) if path.is_dir() else yaml.safe_load_all(path.read_text())


async def by_helm(admin: Admin) -> None:
    """Helm creates what its engine renders, and says of each object that it is of the release."""
    await make_namespace(admin.client, NAMESPACE)
    served = [one for one in (POLICIES, MONITORS, RULES, PERSES) if await _is_served(admin.client, one)]
    objects = helm.rendered(helm.build(), DEPLOY / "chart", NAMESPACE, {"secretNamespaces": [NAMESPACE]}, *served)
    for obj in objects:
        for part, values in RELEASE.items():
            obj["metadata"][part] = obj["metadata"].get(part, {}) | values
    await admin.apply(objects)
    labels = {"metadata": {"labels": {CLUSTER_MONITORING: "true"}}}
    await admin.client.merge_patch(Ref(NAMESPACE_KIND, Key("", NAMESPACE)), labels)


async def _is_served(client: Client, kind: str) -> bool:
    group, _, name = kind.split("/")
    with suppress(NotServed):
        return bool(await client.discovery.resource(Kind(group, name)))
    return False


async def by_olm(admin: Admin) -> None:
    """Subscribe to our bundle, and add what OLM does not install."""
    [csv] = [yaml.safe_load(path.read_text()) for path in BUNDLE.glob("*.clusterserviceversion.yaml")]
    suggested = csv["metadata"]["annotations"]["operatorframework.io/suggested-namespace-template"]
    namespace = await OperatorNamespace.create(admin.client, NAMESPACE, everywhere=True)
    await admin.apply([json.loads(suggested)])  # as the console of OpenShift does
    await namespace.install(STEWARD, STEWARD.versions[0])
    await admin.client.discovery.refresh()
    await admin.apply_output("policies")
    await admin.apply(list(kustomized(DEPLOY / "monitoring" / "perses")))
    await admin.let_placement_read_secrets()


METHODS: dict[str, Callable[[Admin], Awaitable[None]]] = {
    "chart": by_helm,
    "kustomize": by_kustomize,
    "manifests": by_manifests,
    "bundle": by_olm,
}
