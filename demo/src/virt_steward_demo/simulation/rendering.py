"""Renders the configuration of a pool: merges the MachineConfigs that it selects. Pure."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from virt_steward.objects.canonical import canonical
from virt_steward_demo.simulation.kinds.machineconfiguration import API_VERSION
from virt_steward_demo.simulation.label_selectors import read_selector

if TYPE_CHECKING:
    from collections.abc import Iterable

    from virt_steward.kube.client import Object
    from virt_steward_demo.simulation.control_loop import SimulatedObject

IGNITION = "3.5.0"
ROLE = "machineconfiguration.openshift.io/role"
GENERATED_BY = "machineconfiguration.openshift.io/generated-by-controller-version"
GENERATED_FROM = "simulation.virt-steward.example/kubelet-config"
"""On a MachineConfig: the KubeletConfig that it was generated from."""


class Unrenderable(ValueError):
    """A MachineConfig is invalid."""


@dataclass(frozen=True, slots=True)
class RenderedMachineConfig:
    """The configuration of a pool. Its name contains the hash of its content."""

    name: str
    spec: Object
    sources: tuple[str, ...]

    def configuration(self) -> Object:
        """The reference to it in the spec and status of a pool."""
        source = [{"apiVersion": API_VERSION, "kind": "MachineConfig", "name": name} for name in self.sources]
        return {"name": self.name, "source": source}

    def manifest(self, pool: SimulatedObject) -> Object:
        owner = {
            "apiVersion": API_VERSION,
            "kind": "MachineConfigPool",
            "name": pool.name,
            "uid": pool.metadata.uid,
            "controller": True,
        }
        metadata = {"name": self.name, "annotations": {GENERATED_BY: "simulated"}, "ownerReferences": [owner]}
        return {"apiVersion": API_VERSION, "kind": "MachineConfig", "metadata": metadata, "spec": self.spec}


def render(pool: SimulatedObject, configs: Iterable[SimulatedObject]) -> RenderedMachineConfig | None:
    """Merge in the order of names, so that the last one wins. None if the pool selects no MachineConfig.

    Raises Unrenderable.
    """
    spec_selector = pool.spec.get("machineConfigSelector")
    if spec_selector is None:
        return None
    selector = read_selector(spec_selector)
    sources = sorted(
        (
            one
            for one in configs
            if GENERATED_BY not in one.metadata.annotations and selector.matches(one.metadata.labels)
        ),
        key=lambda one: one.name,
    )
    if not sources:
        return None
    try:
        spec = _merged([one.spec for one in sources])
    except (AttributeError, KeyError, TypeError) as error:  # the schema accepts any config
        raise Unrenderable(f"the MachineConfigs of pool {pool.name} cannot be merged: {error!r}") from None
    digest = hashlib.sha256(canonical(spec)).hexdigest()[:32]
    return RenderedMachineConfig(f"rendered-{pool.name}-{digest}", spec, tuple(one.name for one in sources))


def _merged(specs: list[Object]) -> Object:
    files: dict[str, Object] = {}
    units: dict[str, Object] = {}
    for spec in specs:
        config = spec.get("config") or {}
        files |= {one["path"]: one for one in (config.get("storage") or {}).get("files") or ()}
        for unit in (config.get("systemd") or {}).get("units") or ():
            units[unit["name"]] = _with_dropins(units.get(unit["name"], {}), unit)
    merged: Object = {
        "config": {
            "ignition": {"version": IGNITION},
            "storage": {"files": [files[path] for path in sorted(files)]},
            "systemd": {"units": [units[name] for name in sorted(units)]},
        },
        "extensions": sorted({name for spec in specs for name in spec.get("extensions") or ()}),
        "fips": any(spec.get("fips") for spec in specs),
        "kernelArguments": [argument for spec in specs for argument in spec.get("kernelArguments") or ()],
    }
    for name in ("kernelType", "osImageURL"):
        merged[name] = next((spec[name] for spec in reversed(specs) if spec.get(name)), "")
    return merged


def _with_dropins(before: Object, unit: Object) -> Object:
    dropins = {one["name"]: one for one in (*before.get("dropins", ()), *unit.get("dropins", ()))}
    return {**before, **unit, **({"dropins": list(dropins.values())} if dropins else {})}


def kubelet_machine_configs(
    pools: Iterable[SimulatedObject], kubelet_configs: Iterable[SimulatedObject]
) -> list[Object]:
    """One MachineConfig per pool and KubeletConfig that selects it. From the second on, their names are numbered."""
    generated = []
    ordered = sorted(kubelet_configs, key=lambda one: one.name)
    for pool in pools:
        chosen = [one for one in ordered if _selects(one, pool)]
        for number, one in enumerate(chosen):
            name = f"99-{pool.name}-generated-kubelet" + (f"-{number}" if number else "")
            generated.append(_kubelet_machine_config(name, pool, one))
    return generated


def _selects(kubelet_config: SimulatedObject, pool: SimulatedObject) -> bool:
    selector = kubelet_config.spec.get("machineConfigPoolSelector")
    if not selector:  # unlike other selectors, an empty one selects nothing
        return False
    return read_selector(selector).matches(pool.metadata.labels)


def _kubelet_machine_config(name: str, pool: SimulatedObject, kubelet_config: SimulatedObject) -> Object:
    content: dict[str, Any] = {
        "kind": "KubeletConfiguration",
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        **kubelet_config.spec.get("kubeletConfig", {}),
    }
    files = [_file("/etc/kubernetes/kubelet.conf", canonical(content).decode())]
    if "autoSizingReserved" in kubelet_config.spec:
        flag = str(kubelet_config.spec["autoSizingReserved"]).lower()
        files.append(_file("/etc/node-sizing-enabled.env", f"NODE_SIZING_ENABLED={flag}\n"))
    config = {"ignition": {"version": IGNITION}, "storage": {"files": files}}
    metadata = {"name": name, "labels": {ROLE: pool.name}, "annotations": {GENERATED_FROM: kubelet_config.name}}
    return {"apiVersion": API_VERSION, "kind": "MachineConfig", "metadata": metadata, "spec": {"config": config}}


def _file(path: str, content: str) -> Object:
    return {"path": path, "mode": 0o644, "overwrite": True, "contents": {"source": f"data:,{quote(content)}"}}
