"""Kinds of operators beside KubeVirt: Forklift, MetalLB, quotas, and storage profiles of CDI."""

from virt_steward.objects.identity import Kind
from virt_steward_demo.simulation.schemas import (
    boolean,
    condition,
    mapping,
    plain_list,
    record,
    selector,
    string,
    untyped,
)
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
                    **{name: string("true", "false", default="true") for name in _FORKLIFT_FEATURES},
                    controller_max_vm_inflight={"type": "integer", "minimum": 1, "default": 20},
                    vddk_image=string(),
                ),
                untyped(),
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
                    bgpBackend=string(),
                    controllerNodeSelector=mapping(string()),
                    loadBalancerClass=string(),
                    logLevel=string("all", "debug", "info", "warn", "error", "none"),
                    nodeSelector=mapping(string()),
                ),
                record(conditions=plain_list(condition())),
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
                        allowApplicationAwareClusterResourceQuota=boolean(),
                        vmiCalculatorConfiguration=record(configName=string()),
                    ),
                    namespaceSelector=selector(),
                ),
                record(conditions=plain_list(condition()), phase=string()),
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
                record(claimPropertySets=plain_list(untyped())),
                record(claimPropertySets=plain_list(untyped()), provisioner=string(), storageClass=string()),
                required=("spec",),
            ),
        ),
    ),
)
