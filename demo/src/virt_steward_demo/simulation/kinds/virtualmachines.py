"""KubeVirt, VirtualMachine, VirtualMachineInstance, VirtualMachineInstanceMigration and MigrationPolicy."""

from virt_steward.objects.identity import Kind
from virt_steward_demo.simulation.schemas import (
    boolean,
    condition,
    integer,
    mapping,
    plain_list,
    record,
    string,
    untyped,
)
from virt_steward_demo.simulation.stubs import Stub, StubVersion

GROUP = "kubevirt.io"
API_VERSION = f"{GROUP}/v1"
KUBEVIRT = Kind(GROUP, "KubeVirt", "kubevirts")
VIRTUAL_MACHINE = Kind(GROUP, "VirtualMachine", "virtualmachines")
VIRTUAL_MACHINE_INSTANCE = Kind(GROUP, "VirtualMachineInstance", "virtualmachineinstances")
MIGRATION_POLICY = Kind("migrations.kubevirt.io", "MigrationPolicy", "migrationpolicies")
MIGRATION = Kind(GROUP, "VirtualMachineInstanceMigration", "virtualmachineinstancemigrations")

_STRATEGIES = ("Always", "RerunOnFailure", "Manual", "Halted", "Once")
_INSTANCE = untyped() | {"properties": {"domain": untyped(), "evictionStrategy": string()}}

STUBS = (
    Stub(
        KUBEVIRT,
        "Namespaced",
        (StubVersion("v1", record(configuration=untyped()), untyped(), required=("spec",)),),
        ("kv", "kvs"),
    ),
    Stub(
        VIRTUAL_MACHINE,
        "Namespaced",
        (
            StubVersion(
                "v1",
                record(
                    "template",
                    runStrategy=string(*_STRATEGIES),
                    running=boolean(),
                    template=record(metadata=untyped(), spec=_INSTANCE),
                ),
                record(
                    conditions=plain_list(condition()), created=boolean(), printableStatus=string(), ready=boolean()
                ),
                required=("spec",),
                columns=(("Status", ".status.printableStatus"), ("Ready", ".status.ready")),
            ),
        ),
        ("vm", "vms"),
    ),
    Stub(
        VIRTUAL_MACHINE_INSTANCE,
        "Namespaced",
        (
            StubVersion(
                "v1",
                _INSTANCE,
                record(
                    activePods=mapping(string()),
                    conditions=plain_list(condition()),
                    evacuationNodeName=string(),
                    migrationState=untyped(),
                    nodeName=string(),
                    phase=string(),
                ),
                required=("spec",),
                columns=(
                    ("Phase", ".status.phase"),
                    ("NodeName", ".status.nodeName"),
                    ("Live-Migratable", '.status.conditions[?(@.type=="LiveMigratable")].status'),
                ),
            ),
        ),
        ("vmi", "vmis"),
    ),
    Stub(
        MIGRATION_POLICY,
        "Cluster",
        (
            StubVersion(
                "v1alpha1",
                record(
                    "selectors",
                    allowAutoConverge=boolean(),
                    experimental=record(downtimeTuning=untyped()),
                    maxDowntimeMs=integer(least=0),
                    selectors=record(
                        namespaceSelector=mapping(string()), virtualMachineInstanceSelector=mapping(string())
                    ),
                ),
                untyped(),
                required=("spec",),
            ),
        ),
    ),
    Stub(
        MIGRATION,
        "Namespaced",
        (
            StubVersion(
                "v1",
                record(addedNodeSelector=mapping(string()), vmiName=string()),
                record(conditions=plain_list(condition()), migrationState=untyped(), phase=string()),
                columns=(("Phase", ".status.phase"), ("VMI", ".spec.vmiName")),
            ),
        ),
        ("vmim", "vmims"),
    ),
)
