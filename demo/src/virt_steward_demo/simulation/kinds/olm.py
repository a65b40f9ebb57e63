"""The kinds of the Operator Lifecycle Manager, with open schemas: an InstallPlan contains whole operators."""

from virt_steward.controllers.approver.olm import CLUSTER_SERVICE_VERSION, INSTALL_PLAN, SUBSCRIPTION
from virt_steward_demo.simulation.schemas import untyped
from virt_steward_demo.simulation.stubs import Stub, StubVersion

STUBS = tuple(
    Stub(kind, "Namespaced", (StubVersion("v1alpha1", untyped(), untyped(), columns=columns),), short_names)
    for kind, short_names, columns in (
        (
            INSTALL_PLAN,
            ("ip",),
            (
                ("CSV", ".spec.clusterServiceVersionNames[0]"),
                ("Approval", ".spec.approval"),
                ("Approved", ".spec.approved"),
            ),
        ),
        (SUBSCRIPTION, ("sub", "subs"), (("Package", ".spec.name"), ("Current", ".status.currentCSV"))),
        (CLUSTER_SERVICE_VERSION, ("csv", "csvs"), (("Phase", ".status.phase"),)),
    )
)
