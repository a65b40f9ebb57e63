"""Machines and clusters with sane defaults."""

from collections.abc import Mapping
from typing import Any

from virt_steward.apis.meta import LabelSelector
from virt_steward.controllers.placement.observation import (
    Finding,
    Machine,
    MachineMeta,
    MachineRequest,
    MachineSpec,
    MemberCluster,
    PlacementObservation,
    ProviderConfig,
    UnusableCluster,
)
from virt_steward.controllers.placement.options import PlacementRules
from virt_steward.controllers.placement.verdicts import PlacementReason

NO_SECRET = UnusableCluster(PlacementReason.SECRET_NOT_FOUND, "Secret kubevirt-secrets/east not found")


def a_machine(
    name: str = "my-vm",
    *,
    config: str = "",
    selector: str = "",
    strategy: str = "",
    provider: str = "",
    provider_config: str = "",
    cluster_selector: LabelSelector | None = None,
) -> Machine:
    return Machine(
        MachineMeta(name=name, namespace="default", uid=name, annotations=MachineRequest(config, selector, strategy)),
        MachineSpec(provider, ProviderConfig(provider_config), cluster_selector),
    )


def a_cluster(name: str, **facts: Any) -> MemberCluster:
    return MemberCluster(name, facts.pop("labels", {}), **facts)


def a_view(
    machine: Machine, *clusters: MemberCluster, findings: Mapping[str, Finding] | None = None, **rules: Any
) -> PlacementObservation:
    return PlacementObservation(
        machine, tuple(sorted(clusters, key=lambda one: one.name)), findings or {}, PlacementRules(**rules)
    )
