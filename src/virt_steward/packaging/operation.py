"""How pods are run: their priority, where they are placed, when they may be evicted, and whom they may talk to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from virt_steward.runtime.access import ALL_IN_ONE, APP, component_labels
from virt_steward.settings import CONSOLE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from virt_steward.runtime.access import Installation

Object = dict[str, Any]

MEMORY = {CONSOLE: 96, ALL_IN_ONE: 112}
"""MiB that a pod requests, where it is not that of a controller."""
PRIORITY_CLASS = "virt-steward"
"""Our own: system-cluster-critical would evict VMs for a controller that no VM needs to run.

Some clusters also refuse it outside of kube-system.
"""
EGRESS_PORTS = (443, 6443, 8443, 9091)
"""API servers of this cluster and of members, endpoints of notifications, and the Prometheus of gates on OpenShift.

A NetworkPolicy cannot name them: it knows neither host names nor Services, and API servers are no pods.
"""
IMAGE_PATTERN = r"^[^\s@]+(@sha256:[0-9a-f]{64})?$"
"""A name with a tag or a digest."""
DNS_PORTS = (53, 5353)
"""Policies see the port of the DNS pod, which on OpenShift is 5353."""


@dataclass(frozen=True, slots=True)
class OperationOptions:
    """How an admin wants the pods to be run."""

    all_in_one: bool = False
    """One Deployment with all controllers, and one account with the rights of all."""
    priority_class: str = PRIORITY_CLASS
    """Empty: that of the cluster."""
    network_policies: bool = True
    egress_ports: tuple[int, ...] = EGRESS_PORTS
    """TCP ports that pods may connect to, at any address; empty: all."""


def priority_class(options: OperationOptions) -> list[Object]:
    """The PriorityClass, unless pods use another one."""
    if options.priority_class != PRIORITY_CLASS:
        return []
    return [
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": PRIORITY_CLASS, "labels": component_labels("operation")},
            "value": 1_000_000,
            "preemptionPolicy": "Never",
            "description": "Controllers of virt-steward: before usual pods in the queue of the scheduler, and evicted"
            " after them. No pod is evicted for them.",
        }
    ]


def placed(pod: Object, labels: dict[str, str], options: OperationOptions) -> Object:
    """Add to the spec of a pod how it is scheduled: replicas on different nodes and zones, where there are any."""
    keys = ("kubernetes.io/hostname", "topology.kubernetes.io/zone")
    spread = [
        {
            "maxSkew": 1,
            "topologyKey": key,
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": labels},
        }
        for key in keys
    ]
    priority = {"priorityClassName": options.priority_class} if options.priority_class else {}
    return {**pod, **priority, "topologySpreadConstraints": spread}


def resources_of(component: str) -> Object:
    """What a pod requests, and its limit of memory.

    From `python -m tests.bench.footprint`: a controller that has nothing to do holds 54 to 69 MiB (the autopilot), the
    console 80, all controllers in one 74, and each uses one to four thousandths of a core. From `make stress`: with
    5,000 InstallPlans, 400 CRDs or 20 clusters a controller holds 57 to 67 MiB. 20m of CPU are some twenty reactions
    in a second. There is no limit of CPU: it would delay the renewal of the lease.
    """
    return {"requests": {"cpu": "20m", "memory": f"{MEMORY.get(component, 80)}Mi"}, "limits": {"memory": "256Mi"}}


def budget(deployment: Object) -> Object:
    """The PodDisruptionBudget of a Deployment: one pod at a time, so that a single replica never blocks a drain."""
    metadata, selector = deployment["metadata"], deployment["spec"]["selector"]
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {name: metadata[name] for name in ("name", "namespace", "labels")},
        "spec": {"maxUnavailable": 1, "unhealthyPodEvictionPolicy": "AlwaysAllow", "selector": selector},
    }


def network_policy(installation: Installation, metrics: int, ports: Iterable[int] | str) -> Object:
    """For all of our pods: only metrics can be reached, and only DNS and these ports from there.

    Kubelets reach the probes of pods on their node whatever policies say. `ports` may be a placeholder.
    """
    named = ports if isinstance(ports, str) else _ports("TCP", *ports)
    dns = [*_ports("UDP", *DNS_PORTS), *_ports("TCP", *DNS_PORTS)]
    spec = {
        "podSelector": {"matchLabels": APP},
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [{"ports": _ports("TCP", metrics)}],
        "egress": [{"ports": dns}, {"ports": named}],
    }
    return _policy(installation, installation.prefix, "network", spec)


def console_policy(installation: Installation, component: str, port: int) -> Object:
    """The pages of the console can be reached, too: by a proxy in front of it, if it listens for one."""
    selector = component_labels(component)
    spec = {
        "podSelector": {"matchLabels": selector},
        "policyTypes": ["Ingress"],
        "ingress": [{"ports": _ports("TCP", port)}],
    }
    return _policy(installation, f"{installation.prefix}-{component}", component, spec)


def _policy(installation: Installation, name: str, component: str, spec: Object) -> Object:
    metadata = {"name": name, "namespace": installation.namespace, "labels": component_labels(component)}
    return {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": metadata, "spec": spec}


def _ports(protocol: str, *ports: int) -> list[Object]:
    return [{"port": port, "protocol": protocol} for port in ports]
