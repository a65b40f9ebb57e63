"""Operators beside KubeVirt: Forklift, MetalLB, quotas, and what CDI knows of storage."""

from virt_steward.objects.identity import Kind
from virt_steward_demo.simulation.schemas import anything, condition, flag, listed, mapping, record, selector, text
from virt_steward_demo.simulation.stubs import Stub, StubVersion

FORKLIFT_CONTROLLER = Kind("forklift.konveyor.io", "ForkliftController", "forkliftcontrollers")
METAL_LB = Kind("metallb.io", "MetalLB", "metallbs")
AAQ = Kind("aaq.kubevirt.io", "AAQ", "aaqs")
STORAGE_PROFILE = Kind("cdi.kubevirt.io", "StorageProfile", "storageprofiles")

_FORKLIFT_FEATURES = ("feature_ui_plugin", "feature_validation", "feature_volume_populator")

STUBS = (
    Stub(
        FORKLIFT_CONTROLLER,
        "Namespaced",
        (
            StubVersion(
                "v1beta1",
                record(
                    **{name: text("true", "false", default="true") for name in _FORKLIFT_FEATURES},
                    controller_max_vm_inflight={"type": "integer", "minimum": 1, "default": 20},
                    vddk_image=text(),
                ),
                anything(),
            ),
        ),
    ),
    Stub(
        METAL_LB,
        "Namespaced",
        (
            StubVersion(
                "v1beta1",
                record(
                    bgpBackend=text(),
                    controllerNodeSelector=mapping(text()),
                    loadBalancerClass=text(),
                    logLevel=text("all", "debug", "info", "warn", "error", "none"),
                    nodeSelector=mapping(text()),
                ),
                record(conditions=listed(condition())),
            ),
        ),
    ),
    Stub(
        AAQ,
        "Cluster",
        (
            StubVersion(
                "v1alpha1",
                record(
                    configuration=record(
                        allowApplicationAwareClusterResourceQuota=flag(),
                        vmiCalculatorConfiguration=record(configName=text()),
                    ),
                    namespaceSelector=selector(),
                ),
                record(conditions=listed(condition()), phase=text()),
                required=("spec",),
            ),
        ),
    ),
    Stub(
        STORAGE_PROFILE,
        "Cluster",
        (
            StubVersion(
                "v1beta1",
                record(claimPropertySets=listed(anything())),
                record(claimPropertySets=listed(anything()), provisioner=text(), storageClass=text()),
                required=("spec",),
            ),
        ),
    ),
)
