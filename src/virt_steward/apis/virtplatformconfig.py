"""VirtPlatformConfig: one tuning profile, what it would change, who approved that, and its progress."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from virt_steward.apis.crd import AGE, ApiVersion, Column, Crd
from virt_steward.apis.drift import DriftEntry
from virt_steward.apis.meta import (
    MOST_APPROVERS,
    Condition,
    Duration,
    FreezeOverride,
    GateName,
    RequiredApprovals,
    Time,
    WindowSpec,
)
from virt_steward.apis.profileoptions import options_rules
from virt_steward.apis.profiles import OPTIONS_OF, ProfileName, ProfileOptions
from virt_steward.apis.schema import ATOMIC, INT32, ApiStruct, keyed_by, matching, rule
from virt_steward.objects.identity import Kind

HISTORY_KEPT = 10
NAMES_SHOWN = 50


Action = Literal["DryRun", "Apply", "Ignore", "Rollback"]
Impact = Literal["Low", "Medium", "High"]
ItemState = Literal["Pending", "InProgress", "Completed", "Failed"]
Phase = Literal[
    "Pending",
    "Drafting",
    "PrerequisiteFailed",
    "ReviewRequired",
    "InProgress",
    "Completed",
    "CompletedWithErrors",
    "CompletedWithUpgrade",
    "Failed",
    "Drifted",
    "Ignored",
]
Outcome = Literal["Completed", "CompletedWithErrors", "Failed", "Interrupted"]

Hash = Annotated[str, Meta(max_length=71)]
Names = Annotated[tuple[Annotated[str, Meta(max_length=317)], ...], Meta(max_length=NAMES_SHOWN), ATOMIC]


class PlanApprovalRules(RequiredApprovals, frozen=True):
    """Who must approve a plan before it is executed."""

    exclude_requester: Annotated[
        bool,
        Meta(
            description="Do not count the approval of the user who asked for the plan. The annotation"
            " advisor.kubevirt.io/requested-by names them; the admission policy requires it."
        ),
    ] = False


class VirtPlatformConfigSpec(ApiStruct, frozen=True):
    """Which profile, and what to do about it."""

    rules = options_rules(OPTIONS_OF)

    profile: Annotated[
        ProfileName,
        rule("self == oldSelf", "Profile is immutable"),
        Meta(description="The profile; the object has the same name."),
    ]
    action: Annotated[
        Action,
        Meta(
            description="DryRun shows what would change and waits. Apply executes it. Ignore changes nothing"
            " and rolls nothing back. Rollback plans a rollback, and executes it once that plan is approved."
        ),
    ] = "DryRun"
    failure_policy: Annotated[
        Literal["Abort", "Continue"],
        Meta(description="Whether later items are still applied after one has failed."),
    ] = "Abort"
    bypass_optimistic_lock: Annotated[
        bool,
        Meta(
            description="Dangerous. Apply even if others have changed the targets since the plan was made, and apply"
            " again whenever they do."
        ),
    ] = False
    wait_timeout: Annotated[
        Duration | None,
        Meta(description="How long an item may take to become ready, such as 2h; unset means no limit."),
    ] = None
    options: Annotated[ProfileOptions | None, Meta(description="Options of the profile; unset means its defaults.")] = (
        None
    )
    window: Annotated[
        WindowSpec | None,
        Meta(description="Start items only while this window is open. An item that has started goes on past its end."),
    ] = None
    approvals: Annotated[
        PlanApprovalRules | None,
        Meta(
            description="People who must approve a plan, by its hash, before it is executed. If set, action Apply alone"
            " approves nothing. To lower it needs the right to relax-approvals."
        ),
    ] = None
    freeze: Annotated[
        WindowSpec | None,
        Meta(description="Start no item while this freeze is in force, whatever the window says."),
    ] = None
    gates: Annotated[
        tuple[GateName, ...],
        Meta(
            description="Start items only while all of these gates are open. They are defined in the controller's"
            " settings; an unknown one is closed.",
            max_length=20,
        ),
        ATOMIC,
    ] = ()
    notify: Annotated[
        str,
        Meta(
            description="The endpoint that is notified of reviews, drift and results, by its name in the controller's"
            " settings.",
            max_length=63,
        ),
        matching("[a-z0-9]([-a-z0-9]*[a-z0-9])?", "an endpoint is named in lower case letters, digits and '-'"),
    ] = ""


class TargetRef(ApiStruct, frozen=True):
    """The object that an item writes."""

    api_version: Annotated[str, Meta(description="Its group and version.", max_length=253)]
    kind: Annotated[str, Meta(description="Its kind.", max_length=63)]
    name: Annotated[str, Meta(description="Its name.", max_length=253)]
    namespace: Annotated[str, Meta(description="Its namespace, if it has one.", max_length=63)] = ""


class TakenField(ApiStruct, frozen=True):
    """A field that another manager owns and that the item takes over."""

    manager: Annotated[str, Meta(description="Who owns it now.", max_length=128)]
    field: Annotated[str, Meta(description="Which field.", max_length=1024)]


class PoolRadius(ApiStruct, frozen=True):
    """A MachineConfigPool whose nodes reboot."""

    name: Annotated[str, Meta(description="The pool.", max_length=253)]
    nodes: Annotated[int, Meta(description="How many of its nodes reboot.", ge=0), INT32]
    rounds: Annotated[int, Meta(description="In how many rounds, by maxUnavailable.", ge=0), INT32]
    paused: Annotated[bool, Meta(description="Paused: its nodes do not reboot until somebody resumes it.")] = False


class BlastRadius(ApiStruct, frozen=True):
    """What an item disrupts, as of when the plan was made."""

    pools: Annotated[
        tuple[PoolRadius, ...], Meta(description="Pools whose nodes reboot.", max_length=NAMES_SHOWN), keyed_by("name")
    ] = ()
    nodes: Annotated[Names, Meta(description="Nodes that reboot, no more than 50.")] = ()
    node_count: Annotated[int, Meta(description="How many nodes reboot.", ge=0), INT32] = 0
    virtual_machines: Annotated[int, Meta(description="Virtual machines that must migrate.", ge=0), INT32] = 0
    immovable: Annotated[Names, Meta(description="Virtual machines that cannot migrate and stop, at most 50.")] = ()
    immovable_count: Annotated[int, Meta(description="How many cannot migrate.", ge=0), INT32] = 0
    message: Annotated[str, Meta(description="The same in one sentence.", max_length=1024)] = ""


class PlanItem(ApiStruct, frozen=True):
    """One change of one object."""

    name: Annotated[str, Meta(description="What it is about.", min_length=1, max_length=63)]
    target_ref: Annotated[TargetRef, Meta(description="The object that it writes.")]
    impact_severity: Annotated[Impact, Meta(description="How disruptive it is.")]
    state: Annotated[ItemState, Meta(description="Its progress.")] = "Pending"
    message: Annotated[str, Meta(description="What is planned, done or waited for.", max_length=2048)] = ""
    diff: Annotated[
        str, Meta(description="What changes, as a unified diff; empty if nothing does.", max_length=131072)
    ] = ""
    desired_state: Annotated[
        dict[str, Any], Meta(description="All that is wanted of the object; empty if nothing is written.")
    ] = msgspec.field(default_factory=dict)
    managed_fields: Annotated[
        tuple[Annotated[str, Meta(max_length=512)], ...],
        Meta(description="The fields that it sets and watches.", max_length=200),
        ATOMIC,
    ] = ()
    takes: Annotated[
        tuple[TakenField, ...], Meta(description="Fields of others that it takes over.", max_length=200), ATOMIC
    ] = ()
    hash: Annotated[Hash, Meta(description="The managed fields as they were when the plan was made.")] = ""
    planned_hash: Annotated[Hash, Meta(description="The managed fields as they will be once it is applied.")] = ""
    blast_radius: Annotated[BlastRadius | None, Meta(description="What it disrupts, if nodes reboot.")] = None
    drift: Annotated[
        tuple[DriftEntry, ...],
        Meta(description="Fields that are not as planned any more, no more than 20.", max_length=20),
        ATOMIC,
    ] = ()
    last_transition_time: Annotated[Time | None, Meta(description="Since when it is in its state.")] = None


class GovernedTarget(ApiStruct, frozen=True):
    """An object that was applied, and the fields that were set."""

    target_ref: Annotated[TargetRef, Meta(description="The object.")]
    managed_fields: Annotated[
        tuple[Annotated[str, Meta(max_length=512)], ...], Meta(description="The fields.", max_length=200), ATOMIC
    ]
    hash: Annotated[Hash, Meta(description="Their values when they were applied.")]


class Input(ApiStruct, frozen=True):
    """Something outside of the options that the plan depends on."""

    name: Annotated[str, Meta(description="What it is.", min_length=1, max_length=253)]
    value: Annotated[str, Meta(description="What it was when the plan was made.", max_length=1024)]


class PlanApprover(ApiStruct, frozen=True):
    """A person who approved a plan."""

    by: Annotated[str, Meta(description="Who.", max_length=512)]
    at: Annotated[Time | None, Meta(description="When, as their approval says.")] = None
    comment: Annotated[str, Meta(description="Why.", max_length=1024)] = ""


PlanApprovers = Annotated[
    tuple[PlanApprover, ...],
    Meta(description="Each person who approved, if spec.approvals required it.", max_length=MOST_APPROVERS),
    ATOMIC,
]


class PlanApproval(ApiStruct, frozen=True):
    """Who approved which plan."""

    plan_hash: Annotated[Hash, Meta(description="The plan.")]
    at: Annotated[Time, Meta(description="When the approval was observed.")]
    by: Annotated[str, Meta(description="Who approved; empty if action Apply requested it.")] = ""
    comment: Annotated[str, Meta(description="Why.", max_length=1024)] = ""
    approvers: PlanApprovers = ()
    override_freeze: Annotated[
        FreezeOverride | None, Meta(description="Who let the plan go on in spite of a freeze.")
    ] = None


class Execution(ApiStruct, frozen=True):
    """A plan that was started, and how it ended."""

    plan_hash: Annotated[Hash, Meta(description="The plan.")]
    at: Annotated[Time, Meta(description="When it ended.")]
    outcome: Annotated[
        Outcome,
        Meta(
            description="The phase in which it ended; Interrupted if another plan, another action or a missing"
            " prerequisite ended it before."
        ),
    ]
    by: Annotated[str, Meta(description="Who approved it.")] = ""
    comment: Annotated[str, Meta(description="Why.", max_length=1024)] = ""
    version: Annotated[str, Meta(description="The version whose logic made the plan.", max_length=64)] = ""
    approvers: PlanApprovers = ()
    override_freeze: Annotated[
        FreezeOverride | None, Meta(description="Who let the plan go on in spite of a freeze.")
    ] = None


class VirtPlatformConfigStatus(ApiStruct, frozen=True):
    """The plan and its progress."""

    phase: Annotated[Phase | None, Meta(description="The state in one word; the conditions say more.")] = None
    impact_severity: Annotated[
        Impact | None,
        Meta(
            description="The worst of the items; while ignored, what the profile usually has: a plan may"
            " have a higher or a lower one."
        ),
    ] = None
    observed_generation: Annotated[
        int, Meta(description="The generation of the spec that this status is about.", ge=0)
    ] = 0
    plan_hash: Annotated[Hash, Meta(description="The hash of the plan: an approval names it.")] = ""
    executions: Annotated[
        int,
        Meta(
            description="How many plans were started. It is part of the hash of the next plan, so that an approval"
            " starts one execution.",
            ge=0,
        ),
    ] = 0
    plan_action: Annotated[
        Action | None,
        Meta(
            description="The action that the plan was made for, or started by; none while ignored. Rollback marks a"
            " rollback plan."
        ),
    ] = None
    plan_generation: Annotated[
        int, Meta(description="The generation of the spec that the plan was made for.", ge=0)
    ] = 0
    source_snapshot_hash: Annotated[
        Hash, Meta(description="The managed fields of all targets as they were when the plan was made.")
    ] = ""
    operator_version: Annotated[str, Meta(description="The version whose logic made the plan.", max_length=64)] = ""
    applied_options: Annotated[ProfileOptions | None, Meta(description="The options that the plan was made for.")] = (
        None
    )
    inputs: Annotated[
        tuple[Input, ...],
        Meta(description="What else the plan depends on, as it was when it was made.", max_length=50),
        keyed_by("name"),
    ] = ()
    applied_inputs: Annotated[
        tuple[Input, ...],
        Meta(description="The same for the plan that was executed last.", max_length=50),
        keyed_by("name"),
    ] = ()
    items: Annotated[
        tuple[PlanItem, ...],
        Meta(description="The changes, in the order of execution.", max_length=50),
        keyed_by("name"),
    ] = ()
    governed: Annotated[
        tuple[GovernedTarget, ...],
        Meta(description="Objects that were applied by this profile, also by earlier plans.", max_length=50),
        ATOMIC,
    ] = ()
    approval: Annotated[PlanApproval | None, Meta(description="Who approved the plan that runs or ran last.")] = None
    history: Annotated[
        tuple[Execution, ...],
        Meta(description="The last ten plans that were started, newest first.", max_length=HISTORY_KEPT),
        ATOMIC,
    ] = ()
    pre_image: Annotated[
        str,
        Meta(description="The ControllerRevision with what was there before the last execution.", max_length=317),
    ] = ""
    conditions: Annotated[
        tuple[Condition, ...], Meta(description="The state in detail.", max_length=40), keyed_by("type")
    ] = ()


IMPACT_COLUMN = "How disruptive the plan is; while the action is Ignore, what the profile usually is."
VIRT_PLATFORM_CONFIG = Kind("advisor.kubevirt.io", "VirtPlatformConfig", "virtplatformconfigs")
API_VERSION = f"{VIRT_PLATFORM_CONFIG.group}/v1alpha1"

VIRT_PLATFORM_CONFIG_CRD = Crd(
    kind=VIRT_PLATFORM_CONFIG,
    scope="Cluster",
    description="A tuning profile of the platform: shows what it would change and how disruptive that is, and"
    " changes nothing before somebody approves.",
    versions=(
        ApiVersion(
            "v1alpha1",
            spec=VirtPlatformConfigSpec,
            status=VirtPlatformConfigStatus,
            columns=(
                Column("Action", "string", ".spec.action", "The requested action."),
                Column("Impact", "string", ".status.impactSeverity", IMPACT_COLUMN),
                Column("Phase", "string", ".status.phase", "Its progress."),
                AGE,
            ),
            rules=(
                rule(
                    "self.metadata.name == self.spec.profile",
                    "To ensure a singleton pattern, the VirtPlatformConfig name must exactly match the spec.profile.",
                ),
            ),
        ),
    ),
)
