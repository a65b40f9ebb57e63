"""KubevirtConfig: a cluster that can run machines, and how to reach it. A superset of what others install."""

from typing import Annotated

from msgspec import Meta

from virt_steward.apis.crd import AGE, ApiVersion, Column, Crd
from virt_steward.apis.meta import NAMESPACE_NAME, Condition, NamespaceName, Time
from virt_steward.apis.schema import INT32, ApiStruct, keyed_by, matching
from virt_steward.objects.identity import Kind

Quantity = Annotated[
    str,
    Meta(min_length=1, max_length=32),
    matching("[0-9]+([.][0-9]+)?(m|k|Ki|M|Mi|G|Gi|T|Ti|P|Pi)?", "a quantity is a number with a unit, such as 512Gi"),
]

SECRET_NAME = f"{NAMESPACE_NAME}([.]{NAMESPACE_NAME})*"


class Capacity(ApiStruct, frozen=True):
    """What the cluster offers to machines, where it does not tell itself."""

    cpu: Annotated[Quantity | None, Meta(description="Cores, such as 128.")] = None
    memory: Annotated[Quantity | None, Meta(description="Memory, such as 2Ti.")] = None


class KubevirtConfigSpec(ApiStruct, frozen=True):
    """Where the cluster is, and what may be placed on it."""

    name: Annotated[str, Meta(description="A name for people.", max_length=253)] = ""
    kubeconfig_secret_ref: Annotated[
        str,
        Meta(description="The Secret that holds a kubeconfig under the key kubeconfig.", max_length=253),
        matching(f"({SECRET_NAME})?", "a Secret is named in lower case letters, digits, '-' and '.'"),
    ] = ""
    secret_namespace: Annotated[NamespaceName | None, Meta(description="The namespace of that Secret.")] = None
    provider: Annotated[str, Meta(description="Who provides the cluster; for people.", max_length=253)] = ""
    default: Annotated[
        bool, Meta(description="Machines that say nothing go here. Two defaults block, rather than guess.")
    ] = False
    weight: Annotated[
        int,
        Meta(description="How cheap the cluster is: the strategy weight prefers higher ones.", ge=0, le=1000),
        INT32,
    ] = 100
    schedulable: Annotated[
        bool, Meta(description="Turned off, no machine is newly placed here unless it names this cluster itself.")
    ] = True
    capacity: Annotated[Capacity | None, Meta(description="What the cluster offers to machines.")] = None


Percent = Annotated[int, Meta(ge=0, le=100), INT32]


class ReportedCapacity(ApiStruct, frozen=True):
    """What was last known of the free capacity."""

    memory: Annotated[Percent, Meta(description="Percent of the memory that is free.")]
    cpu: Annotated[Percent | None, Meta(description="Percent of the CPU that is free, if that is known.")] = None
    at: Annotated[Time | None, Meta(description="Since when these are the figures.")] = None


class KubevirtConfigStatus(ApiStruct, frozen=True):
    """What was last seen of the cluster."""

    name: Annotated[str, Meta(description="The name of the cluster.", max_length=253)] = ""
    phase: Annotated[str, Meta(description="One word for the state.", max_length=253)] = ""
    status: Annotated[str, Meta(description="The state in short.", max_length=1024)] = ""
    message: Annotated[str, Meta(description="The state as a sentence.", max_length=32768)] = ""
    created: Annotated[str, Meta(description="When the cluster was created, where somebody knows.", max_length=253)] = (
        ""
    )
    version: Annotated[str, Meta(description="The Kubernetes version of the cluster.", max_length=64)] = ""
    machines: Annotated[int, Meta(description="How many machines are placed here.", ge=0), INT32] = 0
    free: Annotated[
        ReportedCapacity | None,
        Meta(
            description="Free capacity in steps of 5 percent, by which the strategy least-loaded decides. It is"
            " measured when that strategy places a machine."
        ),
    ] = None
    observed_generation: Annotated[
        int, Meta(description="The generation of the spec that this status speaks of.", ge=0)
    ] = 0
    conditions: Annotated[
        tuple[Condition, ...],
        Meta(description="Whether the cluster can be reached, and its credentials are good.", max_length=20),
        keyed_by("type"),
    ] = ()


KUBEVIRT_CONFIG = Kind("vitistack.io", "KubevirtConfig", "kubevirtconfigs")

KUBEVIRT_CONFIG_CRD = Crd(
    kind=KUBEVIRT_CONFIG,
    scope="Cluster",
    description="A cluster that can run machines, and how to reach it. Labels describe it to selectors.",
    short_names=("kvc",),
    versions=(
        ApiVersion(
            "v1alpha1",
            spec=KubevirtConfigSpec,
            status=KubevirtConfigStatus,
            columns=(
                Column("Name", "string", ".spec.name", "A name for people."),
                Column("Provider", "string", ".spec.provider", "Who provides the cluster."),
                Column("Phase", "string", ".status.phase", "One word for the state."),
                Column("Status", "string", ".status.status", "The state in short."),
                Column("Created", "string", ".status.created", "When the cluster was created."),
                Column("SecretNamespace", "string", ".spec.secretNamespace", "Where its kubeconfig is."),
                Column(
                    "Reachable", "string", ".status.conditions[?(@.type=='Reachable')].status", "Whether it answers."
                ),
                Column("Machines", "integer", ".status.machines", "Machines placed here."),
                Column("Version", "string", ".status.version", "Its Kubernetes version."),
                AGE,
            ),
        ),
    ),
)
