"""What is watched of the platform. Each source is declared once, so that all who read a kind share one watch."""

from __future__ import annotations

from virt_steward.kube.client import Selection
from virt_steward.kube.watch import projection
from virt_steward.objects.corekinds import NODE
from virt_steward.platform.machineconfigs import (
    KUBELET_CONFIG,
    MACHINE_CONFIG,
    MACHINE_CONFIG_POOL,
    KubeletConfigFacts,
    machine_config_facts,
)
from virt_steward.platform.nodes import node_facts
from virt_steward.platform.pools import Pool
from virt_steward.platform.storage import STORAGE_CLASS, STORAGE_PROFILE, StorageClassFacts, profile_facts
from virt_steward.platform.topology import CLUSTER, INFRASTRUCTURE, SCHEDULER, Infrastructure, Scheduler
from virt_steward.runtime.informer import Source

NODES = Source(NODE, node_facts, may_be_denied=True)
INFRASTRUCTURES = Source(INFRASTRUCTURE, projection(Infrastructure), Selection.one(CLUSTER), may_be_denied=True)
SCHEDULERS = Source(SCHEDULER, projection(Scheduler), Selection.one(CLUSTER), may_be_denied=True)
STORAGE_CLASSES = Source(STORAGE_CLASS, projection(StorageClassFacts), may_be_denied=True)
STORAGE_PROFILES = Source(STORAGE_PROFILE, profile_facts, may_be_denied=True)
MACHINE_CONFIGS = Source(MACHINE_CONFIG, machine_config_facts)
POOLS = Source(MACHINE_CONFIG_POOL, projection(Pool))
KUBELET_CONFIGS = Source(KUBELET_CONFIG, projection(KubeletConfigFacts))
