"""A platform on which every asset of the catalog has a reason to be there."""

from typing import Any

from tests.controllers.autopilot.rig import AutopilotRig
from virt_steward.catalog.conditions import AnnotationCondition, ImageCondition
from virt_steward.catalog.load import Catalog
from virt_steward.controllers.autopilot.annotation_keys import SCOPE
from virt_steward.controllers.autopilot.options import HCO, AutopilotOptions
from virt_steward.objects.identity import Key, Kind, Ref, ref_of
from virt_steward.platform.hco import HYPERCONVERGED
from virt_steward_demo.simulation.nodes import Node
from virt_steward_demo.simulation.platform import PlatformShape

LOGGING_STORAGE = "platform.kubevirt.io/logging-storage-class"
FEATURE = "feature.node.kubernetes.io"
HARDWARE = Node(
    "worker-gpu",
    labels={
        f"{FEATURE}/pci-present": "true",
        f"{FEATURE}/cpu-hardware_multithreading": "true",
        f"{FEATURE}/iommu-enabled": "true",
        f"{FEATURE}/usb-present": "true",
    },
    capacity={"nvidia.com/gpu": "2"},
)
SHAPE = PlatformShape(machines_per_worker=0, packages=(), nodes=(HARDWARE,))

DEVICES = {
    "pciHostDevices": [{"resourceName": "example.org/gpu", "pciDeviceSelector": "10DE:1EB8"}],
    "usbHostDevices": [{"resourceName": "example.org/key", "selectors": [{"vendor": "0951", "product": "1666"}]}],
}
SPEC = {"virtualization": {"permittedHostDevices": DEVICES}}

# Where one of these is there, the other has nothing to do.
RIVALS = {"node-health-check": "node-remediation"}


def options_for(catalog: Catalog) -> AutopilotOptions:
    images = [one.key for asset in catalog.assets for one in asset.conditions if isinstance(one, ImageCondition)]
    return AutopilotOptions(images={key: f"example.invalid/{key}:1" for key in images}, namespace=HCO.namespace)


async def ask_for_everything(rig: AutopilotRig) -> None:
    """Set every key that turns something on."""
    keys = [one for asset in rig.catalog.assets for one in asset.conditions if isinstance(one, AnnotationCondition)]
    scheduler = Ref(Kind("config.openshift.io", "Scheduler"), Key("", "cluster"))
    await rig.client.merge_patch(scheduler, {"spec": {"mastersSchedulable": True}})
    await _make_remediation_template(rig)
    await make_storage_profile(rig, "cephfs", "Filesystem")
    annotations = {one.key: one.value or "true" for one in keys} | {SCOPE: "true", LOGGING_STORAGE: "fast"}
    patch: dict[str, Any] = {"metadata": {"annotations": annotations}, "spec": SPEC}
    await rig.client.merge_patch(Ref(HYPERCONVERGED, HCO), patch, manager="admin")


async def _make_remediation_template(rig: AutopilotRig) -> None:
    template = {
        "apiVersion": "fence-agents-remediation.medik8s.io/v1alpha1",
        "kind": "FenceAgentsRemediationTemplate",
        "metadata": {
            "name": "fenceagentsremediationtemplate-default",
            "namespace": "openshift-workload-availability",
        },
        "spec": {"template": {"spec": {"agent": "fence_ipmilan"}}},
    }
    await rig.client.apply(template, manager="admin")


async def make_storage_profile(rig: AutopilotRig, name: str, mode: str) -> None:
    """As CDI does for a storage class whose volumes nodes can share."""
    metadata = {"name": name}
    profile = {"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "StorageProfile", "metadata": metadata, "spec": {}}
    made = await rig.client.create(profile)
    claims = [{"accessModes": ["ReadWriteMany"], "volumeMode": mode}]
    await rig.client.merge_patch(ref_of(made), {"status": {"claimPropertySets": claims}}, subresource="status")


def expected(catalog: Catalog) -> list[str]:
    """What is there once everything was asked for."""
    return [asset.name for asset in catalog.assets if asset.name not in RIVALS]
