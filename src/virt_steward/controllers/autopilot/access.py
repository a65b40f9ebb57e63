"""The RBAC rules of the autopilot, derived from what its catalog creates and reads: by name wherever possible."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

from virt_steward.apis.virtplatformconfig import VIRT_PLATFORM_CONFIG
from virt_steward.catalog.yamlread import document
from virt_steward.controllers.autopilot.options import OPT_OUT_DELETES
from virt_steward.controllers.autopilot.optout import NEVER_DELETED
from virt_steward.controllers.autopilot.rollouts.staged import NAME as STAGED_CHANGES
from virt_steward.controllers.autopilot.watches import ref_of_asset
from virt_steward.holds.gate_board import grants_for
from virt_steward.holds.gate_settings import READY_MADE_ONLY
from virt_steward.holds.installation import FREEZE_GRANT
from virt_steward.kube.discovery import CUSTOM_RESOURCE_DEFINITION
from virt_steward.objects.corekinds import CONFIG_MAP, NAMESPACE, NODE
from virt_steward.objects.identity import Kind
from virt_steward.platform.hco import HYPERCONVERGED
from virt_steward.platform.machineconfigs import KUBELET_CONFIG, MACHINE_CONFIG, MACHINE_CONFIG_POOL
from virt_steward.platform.storage import STORAGE_CLASS, STORAGE_PROFILE
from virt_steward.platform.topology import CLUSTER, INFRASTRUCTURE, SCHEDULER
from virt_steward.runtime.access import APPLY, PATCH, RBAC, READ, WATCH, Access, Grant
from virt_steward.runtime.matters import NOTIFICATION_MEMORY, memory_grants

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from virt_steward.catalog.load import Catalog
    from virt_steward.holds.gate_settings import GateSettings
    from virt_steward.objects.identity import Key, Ref

GO_LEASE = "virt-platform-autopilot.kubevirt.io"
"""The Lease by which the Go operator of this name elects its leader."""
CLUSTER_ROLE = Kind(RBAC, "ClusterRole", "clusterroles")
CLUSTER_ROLE_BINDING = Kind(RBAC, "ClusterRoleBinding", "clusterrolebindings")


def access(name: str, catalog: Catalog, hco: Key, gates: GateSettings = READY_MADE_ONLY) -> Access:
    everything = [ref_of_asset(asset, hco) for asset in catalog.assets]
    wanted = [ref for ref in everything if ref.kind != HYPERCONVERGED]
    return Access(
        name,
        (
            Grant(
                HYPERCONVERGED, (*READ, *WATCH, *PATCH), "to read what is requested, and to label it", names=(hco.name,)
            ),
            *_by_kind(wanted, (*READ, *WATCH, *APPLY), "to keep it in sync with the catalog"),
            *_by_kind((stone.ref for stone in catalog.tombstones), (*WATCH, "delete"), "to delete obsolete objects"),
            *_by_kind((read.ref for read in catalog.needs.objects), WATCH, "to adapt assets to the cluster"),
            *_namespaces(everything),
            Grant(NODE, WATCH, "to know hardware and roles"),
            Grant(INFRASTRUCTURE, WATCH, "to know the platform", names=(CLUSTER.name,)),
            Grant(SCHEDULER, WATCH, "to know if masters run workloads", names=(CLUSTER.name,)),
            Grant(STORAGE_CLASS, WATCH, "to know the default storage class"),
            Grant(STORAGE_PROFILE, WATCH, "to know which storage nodes can share"),
            Grant(MACHINE_CONFIG, WATCH, "to configure nothing twice"),
            Grant(MACHINE_CONFIG_POOL, WATCH, "to know which nodes a MachineConfig concerns"),
            Grant(KUBELET_CONFIG, WATCH, "to replace no KubeletConfig of others"),
            Grant(  # not in a Role, which could not be installed before the platform has its namespace
                CONFIG_MAP,
                (*WATCH, *APPLY),
                "to remember staged changes",
                names=(STAGED_CHANGES,),
            ),
            Grant(VIRT_PLATFORM_CONFIG, WATCH, "to leave governed fields to the advisor"),
            FREEZE_GRANT,
            *grants_for(gates, "autopilot"),
            *_schemas(catalog),
            *_handed_on(catalog),
        ),
        {
            OPT_OUT_DELETES: tuple(
                _by_kind(_deletable(wanted), ("delete",), "to delete what is not requested any more")
            ),
            NOTIFICATION_MEMORY: memory_grants(name),
        },
        other_lease=GO_LEASE,
    )


def _deletable(wanted: Iterable[Ref]) -> Iterator[Ref]:
    return (ref for ref in wanted if ref.kind not in NEVER_DELETED)


def _by_kind(refs: Iterable[Ref], verbs: tuple[str, ...], why: str) -> Iterator[Grant]:
    """By name, in any namespace: a Role cannot be made where the namespace is yet to come with its operator."""
    names: dict[Kind, set[str]] = {}
    for ref in refs:
        names.setdefault(ref.kind, set()).add(ref.key.name)
    for kind, found in sorted(names.items()):
        yield Grant(kind, verbs, why, names=tuple(sorted(found)))


def _namespaces(wanted: Iterable[Ref]) -> Iterator[Grant]:
    names = sorted({ref.key.namespace for ref in wanted} - {""})
    if names:
        yield Grant(NAMESPACE, WATCH, "to write only to namespaces that exist", names=tuple(names))


def _schemas(catalog: Catalog) -> Iterator[Grant]:
    if crds := tuple(sorted(catalog.needs.schemas)):
        yield Grant(CUSTOM_RESOURCE_DEFINITION, READ, "to use only fields that a kind has", names=crds)


def _handed_on(catalog: Catalog) -> Iterator[Grant]:
    """To create a role, we must hold all rights that it grants; to bind one, we need the right to bind it.

    So roles and bindings of the catalog are plain YAML: their rights must be known without a cluster.
    """
    for asset in catalog.assets:
        if asset.object.kind == CLUSTER_ROLE:
            yield from _rules(document(asset.template)["rules"], f"to create the role {asset.object.name}")
        elif asset.object.kind == CLUSTER_ROLE_BINDING:
            role = document(asset.template)["roleRef"]["name"]
            yield Grant(CLUSTER_ROLE, ("bind",), f"to create the binding {asset.object.name}", names=(role,))


def _rules(rules: list[dict[str, Any]], why: str) -> Iterator[Grant]:
    for rule in rules:
        for group, resource in product(rule["apiGroups"], rule["resources"]):
            kind = Kind(group, resource, resource)
            yield Grant(kind, tuple(rule["verbs"]), why, names=tuple(rule.get("resourceNames", ())))
