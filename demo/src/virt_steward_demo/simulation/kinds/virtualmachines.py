"""VirtualMachine, its instance, and an instance's move to another node."""

from virt_steward.objects.identity import Kind
from virt_steward_demo.simulation.schemas import anything, condition, flag, listed, mapping, record, text
from virt_steward_demo.simulation.stubs import Stub, StubVersion

GROUP = "kubevirt.io"
API_VERSION = f"{GROUP}/v1"
VIRTUAL_MACHINE = Kind(GROUP, "VirtualMachine", "virtualmachines")
VIRTUAL_MACHINE_INSTANCE = Kind(GROUP, "VirtualMachineInstance", "virtualmachineinstances")
MIGRATION = Kind(GROUP, "VirtualMachineInstanceMigration", "virtualmachineinstancemigrations")

_STRATEGIES = ("Always", "RerunOnFailure", "Manual", "Halted", "Once")
_INSTANCE = anything() | {"properties": {"domain": anything(), "evictionStrategy": text()}}

STUBS = (
    Stub(
        VIRTUAL_MACHINE,
        "Namespaced",
        (
            StubVersion(
                "v1",
                record(
                    "template",
                    runStrategy=text(*_STRATEGIES),
                    running=flag(),
                    template=record(metadata=anything(), spec=_INSTANCE),
                ),
                record(conditions=listed(condition()), created=flag(), printableStatus=text(), ready=flag()),
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
                    activePods=mapping(text()),
                    conditions=listed(condition()),
                    evacuationNodeName=text(),
                    migrationState=anything(),
                    nodeName=text(),
                    phase=text(),
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
        MIGRATION,
        "Namespaced",
        (
            StubVersion(
                "v1",
                record(addedNodeSelector=mapping(text()), vmiName=text()),
                record(conditions=listed(condition()), migrationState=anything(), phase=text()),
                columns=(("Phase", ".status.phase"), ("VMI", ".spec.vmiName")),
            ),
        ),
        ("vmim", "vmims"),
    ),
)
