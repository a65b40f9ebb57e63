"""Fits more virtual machines on a node: swap on the workers, then memory overcommitment and shared pages."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from virt_steward.apis.profiles import HIGHER_DENSITY, HigherDensityOptions, KsmConfiguration, ProfileOptions
from virt_steward.apis.virtplatformconfig import Input
from virt_steward.controllers.advisor.profiles.profile import Prerequisite, Profile, ProfileDescription
from virt_steward.objects.identity import Key, Ref
from virt_steward.plans.fields import fields_set_by, values
from virt_steward.plans.intent import Impacts, Intent
from virt_steward.platform.hco import HYPERCONVERGED
from virt_steward.platform.machineconfigs import MACHINE_CONFIG, ROLE

if TYPE_CHECKING:
    from virt_steward.controllers.advisor.options import AdvisorOptions
    from virt_steward.controllers.advisor.profiles.profile import ProfileContext

SWAP = Ref(MACHINE_CONFIG, Key("", "90-worker-kubelet-swap"))
POOL = "worker"
NO_NODE = {
    "matchExpressions": [
        {"key": "advisor.kubevirt.io/no-node", "operator": "Exists"},
        {"key": "advisor.kubevirt.io/no-node", "operator": "DoesNotExist"},
    ]
}
"""Turns page sharing off wherever it was turned on: a selector that is left out stays, and an empty one means all."""

FIND_SWAP = """\
#!/bin/bash
# Turns on the partition that is set aside for the memory of virtual machines.
set -euo pipefail
partition=/dev/disk/by-partlabel/CNV_SWAP
if [[ ! -b $partition ]]; then
    echo "no partition is labelled CNV_SWAP: swap stays off" >&2
    exit 0
fi
device=$(readlink --canonicalize "$partition")
if [[ $(blkid --output value --match-tag TYPE "$device") != swap ]]; then
    mkswap "$device"
fi
if ! swapon --show=NAME --noheadings | grep --fixed-strings --line-regexp --quiet "$device"; then
    swapon "$device"
fi
touch /var/tmp/swapfile
"""
KUBELET = """\
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failSwapOn: false
memorySwap:
  swapBehavior: LimitedSwap
"""
PROVISION = """\
[Unit]
Description=Turn on swap for virtual machines
Before=kubelet.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/etc/find-swap-partition

[Install]
RequiredBy=kubelet.service
"""
SYSTEM_SLICE = """\
[Unit]
Description=Keep system services out of swap, and their disks responsive
After=swap-provision.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/bin/systemctl set-property --runtime system.slice MemorySwapMax=0 "IODeviceLatencyTargetSec=/ 50ms"

[Install]
WantedBy=multi-user.target
"""


def profile(options: AdvisorOptions) -> Profile:
    hco = Ref(HYPERCONVERGED, options.hco)
    return Profile(
        name=HIGHER_DENSITY,
        about=ProfileDescription(
            category="density",
            description="Lets nodes promise more memory than they have: swap, overcommitment and shared memory pages",
            impact="High",
            impact_summary="High - Workers reboot to turn on swap; each needs a partition labelled CNV_SWAP",
            options="enableSwap, ksmConfiguration, memoryToRequestRatio (in spec.options.virtHigherDensity)",
        ),
        targets=(SWAP, hco),
        prerequisites=partial(_prerequisites, hco),
        intents=partial(_intents, hco),
        inputs=_inputs,
    )


def _prerequisites(hco: Ref, options: ProfileOptions) -> tuple[Prerequisite, ...]:
    chosen = options.of(HigherDensityOptions)
    needed = [
        Prerequisite(HYPERCONVERGED, "install OpenShift Virtualization"),
        Prerequisite(hco, "create the HyperConverged object of the platform"),
    ]
    if chosen.enable_swap:
        needed.append(Prerequisite(MACHINE_CONFIG, "swap needs the Machine Config Operator; or turn it off"))
    return tuple(needed)


def _inputs(context: ProfileContext) -> tuple[Input, ...]:
    version = Input("HyperConverged version", context.hco.api_version if context.hco else "none")
    if not context.options.of(HigherDensityOptions).enable_swap:
        return (version,)
    return (version, Input("MachineConfig with swap", _swap_by(context) or "none"))


def _intents(hco: Ref, context: ProfileContext) -> tuple[Intent, ...]:
    swap = (_swap(context),) if context.options.of(HigherDensityOptions).enable_swap else ()
    return (*swap, _density(hco, context))


def _swap(context: ProfileContext) -> Intent:
    desired = {
        "apiVersion": f"{SWAP.kind.group}/v1",
        "kind": SWAP.kind.name,
        "metadata": {"name": SWAP.key.name, "labels": {ROLE: POOL}},
        "spec": {"config": _ignition()},
    }
    by = _swap_by(context)
    return Intent(
        name="enable-kubelet-swap",
        desired=desired,
        fields=fields_set_by(desired, whole=("spec.config",)),
        impacts=Impacts(creates="High", changes="High"),
        message=f"MachineConfig '{SWAP.key.name}' will turn on swap for virtual machines",
        moot=f"Swap is already turned on in MachineConfigPool '{POOL}', by MachineConfig '{by}'" if by else "",
    )


def _swap_by(context: ProfileContext) -> str:
    """Who else turns it on, unless we do so already."""
    if context.targets.get(SWAP) is not None:
        return ""
    return next((one.name for one in reversed(context.selected_by(POOL, but=SWAP.key.name)) if one.swap), "")


def _density(hco: Ref, context: ProfileContext) -> Intent:
    options = context.options.of(HigherDensityOptions)
    api_version = context.hco.api_version if context.hco else f"{HYPERCONVERGED.group}/v1beta1"
    is_by_topic = api_version.endswith("/v1")
    selector_at = ("spec.virtualization" if is_by_topic else "spec") + ".ksmConfiguration.nodeLabelSelector"
    ksm = _ksm(options.ksm_configuration or KsmConfiguration(), context.targets.get(hco), selector_at)
    part: dict[str, Any] = {"higherWorkloadDensity": {"memoryOvercommitPercentage": options.memory_to_request_ratio}}
    if ksm.selector is not None:
        part["ksmConfiguration"] = {"nodeLabelSelector": ksm.selector}
    desired = {
        "apiVersion": api_version,
        "kind": HYPERCONVERGED.name,
        "metadata": {"name": hco.key.name, "namespace": hco.key.namespace},
        "spec": {"virtualization": part} if is_by_topic else part,
    }
    return Intent(
        name="configure-higher-density",
        desired=desired,
        fields=fields_set_by(desired, whole=(selector_at,)),
        impacts=Impacts(creates="Medium", changes="Medium"),
        message=f"HyperConverged '{hco.key.name}' will let VMs request {options.memory_to_request_ratio} % of memory"
        + ksm.message,
    )


@dataclass(frozen=True, slots=True)
class _Ksm:
    """Where equal memory pages are to be shared."""

    selector: dict[str, Any] | None
    """None if the field need not be set."""
    message: str


def _ksm(wanted: KsmConfiguration, live: dict[str, Any] | None, selector_at: str) -> _Ksm:
    if wanted.enabled:
        selector = msgspec.to_builtins(wanted.node_label_selector) if wanted.node_label_selector else {}
        return _Ksm(selector, " and share equal memory pages (KSM)")
    if not values(live or {}, (selector_at,)):
        return _Ksm(None, "")
    return _Ksm(NO_NODE, " and turn off KSM by a node selector that matches no node")


def _ignition() -> dict[str, Any]:
    return {
        "ignition": {"version": "3.2.0"},
        "storage": {
            "files": [
                _file("/etc/find-swap-partition", FIND_SWAP, 0o755),
                _file("/etc/openshift/kubelet.conf.d/90-swap.conf", KUBELET, 0o644),
            ]
        },
        "systemd": {
            "units": [
                {"name": "swap-provision.service", "enabled": True, "contents": PROVISION},
                {"name": "cgroup-system-slice-config.service", "enabled": True, "contents": SYSTEM_SLICE},
            ]
        },
    }


def _file(path: str, text: str, mode: int) -> dict[str, Any]:
    source = f"data:text/plain;charset=utf-8;base64,{b64encode(text.encode()).decode()}"
    return {"path": path, "mode": mode, "overwrite": True, "contents": {"source": source}}
