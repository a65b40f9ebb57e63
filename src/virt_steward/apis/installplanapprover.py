"""InstallPlanApprover: which InstallPlans of OLM are approved without a person, and what came of it."""

from typing import Annotated

from msgspec import Meta

from virt_steward.apis.crd import AGE, ApiVersion, Column, Crd
from virt_steward.apis.meta import (
    Condition,
    Duration,
    GateName,
    LabelSelector,
    NamespaceName,
    RequiredApprovals,
    Time,
    WindowSpec,
)
from virt_steward.apis.schema import ATOMIC, INT32, ApiStruct, keyed_by, matching, rule
from virt_steward.objects.identity import Kind

PENDING_SHOWN = 50
HISTORY_KEPT = 10
COUNTED_PLANS_KEPT = 10_000

Csv = Annotated[str, Meta(min_length=1, max_length=253)]
Csvs = Annotated[tuple[Csv, ...], Meta(max_length=100), ATOMIC]
PlanName = Annotated[str, Meta(min_length=3, max_length=317)]

_NUMBER = r"([0-9]+|[xX*])"
_COMPARATOR = rf"(==?|!=?|[<>]=?|~|\^)? ?v?{_NUMBER}(\.{_NUMBER})?(\.{_NUMBER})?(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?"
_ALL_OF = f"{_COMPARATOR}(( +| *, *){_COMPARATOR})*"


class VersionRange(ApiStruct, frozen=True):
    """Versions of one operator that may be approved."""

    operator: Annotated[str, Meta(description="The package name of the operator.", min_length=1, max_length=253)]
    range: Annotated[
        str,
        Meta(
            description="A semver range. It only narrows: within it, the version must still be the pinned one, unless"
            " withinRange is set.",
            min_length=1,
            max_length=256,
        ),
        matching(rf"{_ALL_OF}( *\|\| *{_ALL_OF})*", "a range is made of semver comparisons, such as >=1.4.0 <2.0.0"),
    ]


class Policy(ApiStruct, frozen=True):
    """Further conditions, which narrow what is approved, and two options that widen it."""

    rules = (
        rule(
            "!self.withinRange || size(self.?versions.orValue([])) > 0",
            "withinRange needs versions: a range for each operator whose upgrades are approved without a pin",
        ),
    )

    versions: Annotated[
        tuple[VersionRange, ...],
        Meta(description="Ranges by operator. An operator that is not listed may have any version.", max_length=100),
        keyed_by("operator"),
    ] = ()
    within_range: Annotated[
        bool,
        Meta(
            description="Approve every upgrade, and first installation, to a version inside the range of its operator"
            " in versions, whatever startingCSV says. Operators without a range still need the pin."
        ),
    ] = False
    allow_intermediate: Annotated[
        bool,
        Meta(
            description="Approve upgrades to versions between the installed and the pinned one, through which OLM goes"
            " on its way to the pin. Nothing beyond the pin is approved."
        ),
    ] = False
    first_install_only: Annotated[
        bool, Meta(description="Approve first installations only; upgrades wait for a person.")
    ] = False
    minimum_age: Annotated[
        Duration | None, Meta(description="How long a plan must have existed before it is approved, such as 7d.")
    ] = None
    windows: Annotated[
        tuple[WindowSpec, ...],
        Meta(description="Approve only while one of these windows is open. None means at any time.", max_length=20),
        ATOMIC,
    ] = ()
    approvals: Annotated[
        RequiredApprovals | None,
        Meta(
            description="People who must approve a plan that all other rules would approve. The annotation"
            " operators.bapu.cloud/approvals of the plan has their approvals."
        ),
    ] = None
    freezes: Annotated[
        tuple[WindowSpec, ...],
        Meta(description="Approve nothing while one of these freezes is in force.", max_length=20),
        ATOMIC,
    ] = ()
    gates: Annotated[
        tuple[GateName, ...],
        Meta(
            description="Approve only while all of these gates are open. They are defined in the controller's settings;"
            " an unknown one is closed.",
            max_length=20,
        ),
        ATOMIC,
    ] = ()
    allow_dependencies: Annotated[
        bool, Meta(description="Let a plan bring along operators that are new in the namespace and that it depends on.")
    ] = True


class InstallPlanApproverSpec(ApiStruct, frozen=True):
    """Which plans, and under which conditions."""

    target_namespaces: Annotated[
        tuple[NamespaceName, ...],
        Meta(
            description="Namespaces whose plans are approved. None means all, also those that come later. Outside of"
            " the controller's policy namespaces, no namespace but the approver's own is covered.",
            max_length=1000,
        ),
        ATOMIC,  # a set refuses duplicates, which the Go approver's CRD takes
    ] = ()
    namespace_selector: Annotated[
        LabelSelector | None, Meta(description="Labels that the plan's namespace must have too.")
    ] = None
    operator_names: Annotated[
        tuple[
            Annotated[
                str,
                Meta(min_length=1, max_length=253),
                matching("[a-z0-9][-.a-z0-9]*", "an operator name is made of lower case letters, digits, '-' and '.'"),
            ],
            ...,
        ],
        Meta(
            description="How the names of the ClusterServiceVersions begin. None means any. Mind that cert-manager"
            " also matches cert-manager-webhook.v1: write cert-manager.v to mean that operator alone.",
            max_length=200,
        ),
        ATOMIC,
    ] = ()
    subscription_selector: Annotated[
        LabelSelector | None, Meta(description="Labels that the Subscriptions of the plan must have.")
    ] = None
    auto_approve: Annotated[
        bool, Meta(description="Approve what matches. Turned off, plans are only listed as pending.")
    ] = True
    policy: Annotated[Policy | None, Meta(description="Further conditions, and which versions need no pin.")] = None
    dry_run: Annotated[bool, Meta(description="Say what would be approved, and approve nothing.")] = False
    notify: Annotated[
        str,
        Meta(
            description="The endpoint that hears of approvals and refusals, by its name in the controller's settings.",
            max_length=63,
        ),
        matching("[a-z0-9]([-a-z0-9]*[a-z0-9])?", "an endpoint is named in lower case letters, digits and '-'"),
    ] = ""


class PendingPlan(ApiStruct, frozen=True):
    """A plan that waits, and for what."""

    plan: Annotated[PlanName, Meta(description="Namespace and name of the plan.")]
    csvs: Annotated[Csvs, Meta(description="The ClusterServiceVersions that it would install.")]
    reason: Annotated[str, Meta(description="Why it waits, as one word for machines.", min_length=1, max_length=128)]
    message: Annotated[
        str, Meta(description="Why it waits and what can be done, as a sentence for people.", max_length=1024)
    ]
    since: Annotated[Time, Meta(description="Since when it waits for this reason.")]
    until: Annotated[Time | None, Meta(description="When it will be looked at again, where that is known.")] = None


class ApprovalRecord(ApiStruct, frozen=True):
    """A plan that was approved."""

    plan: Annotated[PlanName, Meta(description="Namespace and name of the plan.")]
    csvs: Annotated[Csvs, Meta(description="The ClusterServiceVersions that it installs.")]
    time: Annotated[Time, Meta(description="When it was approved.")]
    reason: Annotated[str, Meta(description="What allowed it, such as the pin that it matches.", max_length=1024)]


class InstallPlanApproverStatus(ApiStruct, frozen=True):
    """What was approved, and what waits."""

    observed_generation: Annotated[
        int, Meta(description="The generation of the spec that this status speaks of.", ge=0)
    ] = 0
    approved_count: Annotated[int, Meta(description="How many plans were approved so far.", ge=0), INT32] = 0
    last_approved_plan: Annotated[
        str, Meta(description="Namespace and name of the plan approved last.", max_length=317)
    ] = ""
    last_approved_time: Annotated[Time | None, Meta(description="When that plan was approved.")] = None
    pending_count: Annotated[int, Meta(description="How many plans wait.", ge=0), INT32] = 0
    pending: Annotated[
        tuple[PendingPlan, ...],
        Meta(
            description="Plans that wait, no more than 50; those that need a person first, then by namespace and name.",
            max_length=PENDING_SHOWN,
        ),
        ATOMIC,
    ] = ()
    history: Annotated[
        tuple[ApprovalRecord, ...],
        Meta(description="The last ten approvals, newest first.", max_length=HISTORY_KEPT),
        ATOMIC,
    ] = ()
    counted_plans: Annotated[
        tuple[Annotated[str, Meta(min_length=1, max_length=36)], ...],
        Meta(
            description="UIDs of the plans, among those that still exist, which approvedCount includes."
            " They make the count exact across restarts.",
            max_length=COUNTED_PLANS_KEPT,
        ),
        ATOMIC,
    ] = ()
    conditions: Annotated[
        tuple[Condition, ...], Meta(description="The state of this approver.", max_length=20), keyed_by("type")
    ] = ()


INSTALL_PLAN_APPROVER = Kind("operators.bapu.cloud", "InstallPlanApprover", "installplanapprovers")

INSTALL_PLAN_APPROVER_CRD = Crd(
    kind=INSTALL_PLAN_APPROVER,
    scope="Namespaced",
    description="Approves InstallPlans of the operator versions that Subscriptions pin, and no others.",
    short_names=("ipa",),
    versions=(
        ApiVersion(
            "v1alpha1",
            spec=InstallPlanApproverSpec,
            status=InstallPlanApproverStatus,
            columns=(
                Column("Approved", "integer", ".status.approvedCount", "Plans approved so far."),
                Column("Pending", "integer", ".status.pendingCount", "Plans that wait."),
                Column("Last", "date", ".status.lastApprovedTime", "Since the last approval."),
                Column("Last Plan", "string", ".status.lastApprovedPlan", "The plan approved last.", wide=True),
                AGE,
            ),
        ),
    ),
)
