"""Starts OLM's two operators and a catalog server against a control plane, all on loopback."""

import asyncio
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.clients import a_client
from tests.cluster import a_control_plane
from tests.eventually import eventually
from tests.olm.catalog import write_catalog
from tests.olm.recipe import DEFINITIONS, Recipe
from tests.ports import a_free_port
from tests.widgets import install_crd
from virt_steward.kube.client import Client
from virt_steward.objects.identity import Key, Kind, Ref
from virt_steward_demo.local import LocalError
from virt_steward_demo.local.binaries import shipped_recipe
from virt_steward_demo.local.build import Builder, PinnedGo
from virt_steward_demo.local.controlplane import ControlPlane
from virt_steward_demo.local.files import cache_folder
from virt_steward_demo.local.processes import Child
from virt_steward_demo.local.progress import ProgressPrinter
from virt_steward_demo.simulation.kinds.monitoring import STUBS as MONITORING

GROUP = "operators.coreos.com"
NAMESPACE = "openshift-marketplace"
"""That of the catalogs which all namespaces can use, as on OpenShift."""
CATALOG = Ref(Kind(GROUP, "CatalogSource"), Key(NAMESPACE, "test-catalog"))
READY_SECONDS = 60


@dataclass(frozen=True, slots=True)
class LifecycleManager:
    """OLM at work on a control plane of its own."""

    control_plane: ControlPlane
    children: tuple[Child, ...]

    def check(self) -> None:
        """Raise if a program has exited: the tests would wait for it until they time out."""
        self.control_plane.check()
        for child in self.children:
            if not child.alive:
                raise LocalError(f"{child.name} has exited: {child.last_output()}; see {child.log}")


@contextmanager
def a_lifecycle_manager(folder: Path) -> Iterator[LifecycleManager]:
    """Build what is missing, start it and wait until OLM reads the catalog. Blocks, and is for the main thread."""
    programs = find_or_build(os.environ)
    with a_control_plane(folder / "controlplane") as control_plane:
        monitoring = [stub.definition() for stub in MONITORING]  # as on OpenShift: our bundle brings alerts
        asyncio.run(_define_kinds(control_plane, [*_definitions(programs / DEFINITIONS), *monitoring]))
        port = a_free_port()
        children: list[Child] = []
        try:
            for program, flags in _command_lines(folder, port).items():
                argv = [str(programs / program), *flags]
                env = {**os.environ, "KUBECONFIG": str(control_plane.kubeconfig), "OPERATOR_NAMESPACE": NAMESPACE}
                children.append(Child(argv, log=folder / f"{program}.log", cwd=folder, env=env))
            olm = LifecycleManager(control_plane, tuple(children))
            asyncio.run(_connect_catalog(olm, port))
            yield olm
        finally:
            for child in reversed(children):
                child.kill()


def find_or_build(env: Mapping[str, str]) -> Path:
    """The folder of OLM's programs, from the cache or built now."""
    toolchain = shipped_recipe().toolchain
    return Builder(cache_folder(env), PinnedGo(toolchain), env, ProgressPrinter()).build(Recipe(toolchain))


def _command_lines(folder: Path, port: int) -> dict[str, list[str]]:
    write_catalog(folder / "catalog")
    serve = ["serve", str(folder / "catalog"), f"--port={port}", f"--cache-dir={folder / 'opm-cache'}"]
    opm = [*serve, "--cache-enforce-integrity=false", "--pprof-addr=", f"--termination-log={folder / 'opm.end'}"]
    operator = [f"--namespace={NAMESPACE}", "--interval=1m"]
    return {"opm": opm, "olm": operator, "catalog": operator}


def _definitions(folder: Path) -> list[dict[str, Any]]:
    # By libyaml: in pure Python the largest takes seconds.
    return [yaml.load(path.read_bytes(), Loader=yaml.CSafeLoader) for path in sorted(folder.iterdir())]


async def _define_kinds(control_plane: ControlPlane, definitions: list[dict[str, Any]]) -> None:
    async with a_client(control_plane) as client:
        await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        for definition in definitions:
            await install_crd(client, definition)


async def _connect_catalog(olm: LifecycleManager, port: int) -> None:
    async with a_client(olm.control_plane) as client:
        await client.create(_catalog_source(port))
        if not await eventually(lambda: _is_connected(olm, client), within=READY_SECONDS):
            raise LocalError(f"OLM has no connection to the catalog after {READY_SECONDS} s: see {olm.children[0].log}")


async def _is_connected(olm: LifecycleManager, client: Client) -> bool:
    olm.check()
    state = (await client.get(CATALOG)).get("status", {}).get("connectionState", {})
    return bool(state.get("lastObservedState") == "READY")


def _catalog_source(port: int) -> dict[str, Any]:
    return {
        "apiVersion": f"{GROUP}/v1alpha1",
        "kind": CATALOG.kind.name,
        "metadata": {"name": CATALOG.key.name, "namespace": CATALOG.key.namespace},
        "spec": {"sourceType": "grpc", "address": f"127.0.0.1:{port}", "displayName": "Operators of the tests"},
    }
