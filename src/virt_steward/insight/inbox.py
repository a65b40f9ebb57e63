"""What needs a person, across all controllers: the most urgent first, each with its reason and one action."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Literal

from virt_steward.apis.kubevirtconfig import KUBEVIRT_CONFIG
from virt_steward.apis.virtplatformconfig import VIRT_PLATFORM_CONFIG
from virt_steward.controllers.advisor.conditions import FREEZE, GATES
from virt_steward.controllers.approver.olm import INSTALL_PLAN
from virt_steward.controllers.placement.observation import MACHINE
from virt_steward.controllers.placement.report import placed_condition
from virt_steward.objects.document import JsonDocument
from virt_steward.objects.identity import Key, Ref
from virt_steward.plans.intent import worst

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from virt_steward.apis.meta import Condition
    from virt_steward.controllers.advisor.observation import VirtPlatformConfig
    from virt_steward.controllers.placement.observation import Machine
    from virt_steward.controllers.placement.observe import KubevirtConfig as Cluster
    from virt_steward.insight.approvals import PendingInstallPlan
    from virt_steward.insight.assets.state import AssetState
    from virt_steward.platform.pools import Pool

Tone = Literal["bad", "warn", "info"]


HOLDS = {FREEZE: ("Frozen", "is frozen"), GATES: ("Gate closed", "waits for a gate to open")}
"""The condition of a hold, its tag, and what it means."""


class Urgency(IntEnum):
    """The order of the inbox."""

    BROKEN = 0
    HIGH_IMPACT = 1
    DRIFTED = 2
    STUCK = 3
    REVIEW = 4
    HELD = 5
    OFFER = 6


@dataclass(frozen=True, slots=True)
class InboxItem:
    """Something that a person has to decide or fix."""

    urgency: Urgency
    tag: str
    tone: Tone
    ref: Ref
    """The object; users who may read it see the item."""
    subject: str
    """The name of the object."""
    says: str
    """The rest of a sentence that begins with the subject."""
    why: str
    button: str
    asset: str = ""
    """Set where the object is one of the autopilot's."""


def inbox(*items: Iterable[InboxItem]) -> tuple[InboxItem, ...]:
    """All items, the most urgent first."""
    return tuple(sorted((one for some in items for one in some), key=lambda one: (one.urgency, one.ref)))


class InboxLine(JsonDocument, frozen=True):
    """An item of the inbox, for programs."""

    object: str
    tag: str
    message: str
    why: str
    command: str
    """By which a person decides, or learns what to decide."""

    @classmethod
    def of(cls, item: InboxItem) -> InboxLine:
        return cls(str(item.ref), item.tag, f"{item.subject} {item.says}", item.why, command_for(item))


def command_for(item: InboxItem) -> str:
    """The command by which a person decides, or learns what to decide."""
    key = item.ref.key
    if item.asset:
        verbs = {"Staged": "release", "Paused": "resume"}
        return f"virt-steward {verbs.get(item.tag, 'explain asset')} {item.asset}"
    if item.ref.kind == VIRT_PLATFORM_CONFIG:
        is_review = item.urgency in (Urgency.HIGH_IMPACT, Urgency.REVIEW)
        return f"virt-steward {'approve' if is_review else 'explain plan'} {key.name}"
    if item.ref.kind == INSTALL_PLAN:
        return f"virt-steward approve {key}"
    if item.ref.kind == MACHINE:
        return f"virt-steward explain machine {key}"
    return f"kubectl describe {item.ref.kind.plural}.{item.ref.kind.group} {key.name}"


def of_profiles(configs: Iterable[VirtPlatformConfig], pools: Iterable[Pool]) -> Iterator[InboxItem]:
    stuck = {pool.name: why for pool in pools if (why := _why_stuck(pool))}
    for config in configs:
        yield from _of_profile(config, stuck)


def _of_profile(config: VirtPlatformConfig, stuck: dict[str, str]) -> Iterator[InboxItem]:
    status, condition = config.status, _condition(config, config.status.phase or "")
    message = condition.message if condition else ""
    match status.phase:
        case "ReviewRequired" if not config.is_rejected:
            yield _review(config, condition)
        case "Failed":
            yield _profile(config, Urgency.BROKEN, "Failed", "bad", "failed", message, "See what failed")
        case "CompletedWithErrors":
            says = "completed, with items that failed"
            yield _profile(config, Urgency.BROKEN, "Errors", "bad", says, message, "See what failed")
        case "Drifted":
            says = "has drifted from the approved plan"
            yield _profile(config, Urgency.DRIFTED, "Drifted", "warn", says, message, "See the change")
        case "PrerequisiteFailed":
            yield _profile(
                config, Urgency.STUCK, "Blocked", "warn", "lacks prerequisites", message, "See what is missing"
            )
        case "CompletedWithUpgrade":
            says = "is planned differently by this version"
            yield _profile(config, Urgency.OFFER, "Upgrade", "info", says, message, "See the profile")
        case "InProgress" if holding := next((one for one in status.conditions if is_held(one)), None):
            tag, says = HOLDS[holding.type]
            yield _profile(config, Urgency.HELD, tag, "info", says, holding.message, "See the plan")
        case "InProgress":
            held = [stuck[name] for name in sorted(_pools_of(config)) if name in stuck]
            if held:
                yield _profile(
                    config, Urgency.STUCK, "Stuck", "warn", "is not progressing", "; ".join(held), "See the progress"
                )


def is_held(condition: Condition) -> bool:
    """Whether a freeze or a gate keeps the next item from starting. A window opens by itself, so it is not listed."""
    return condition.type in HOLDS and condition.status == "True"


def _review(config: VirtPlatformConfig, condition: Condition | None) -> InboxItem:
    status = config.status
    pending = [item for item in status.items if item.state != "Completed"]
    impact = worst(item.impact_severity for item in pending) if pending else "Low"
    says = "is ready for review"
    if status.plan_action == "Rollback":
        says = "can be rolled back: the rollback plan is ready for review"
    if condition and condition.reason in ("ApprovalVoid", "InputChanged"):
        says = "needs another review"
    impacts = [item.blast_radius.message for item in pending if item.blast_radius and item.blast_radius.message]
    kinds = sorted({f"{item.target_ref.kind} {item.target_ref.name}" for item in pending})
    why = "; ".join(impacts) or f"Changes {', '.join(kinds) or 'nothing'}; no node reboots."
    if condition and condition.reason in ("ApprovalVoid", "InputChanged"):
        why = f"{condition.message}. {why}"
    if count := config.approval_count(status.plan_hash):
        says = "waits for approvals" if count.missing else says
        why = f"{count}. {why}"
    urgency = Urgency.HIGH_IMPACT if impact == "High" else Urgency.REVIEW
    tones: dict[str, Tone] = {"High": "bad", "Medium": "warn"}
    return _profile(config, urgency, f"{impact} impact", tones.get(impact, "info"), says, why, "Review plan")


def of_plans(pending: Iterable[PendingInstallPlan]) -> Iterator[InboxItem]:
    for one in pending:
        if not one.needs_a_person:
            continue
        says = f"is pending with {', '.join(one.csvs[:3])}{' and more' if len(one.csvs) > 3 else ''}"
        yield InboxItem(
            Urgency.HELD,
            "Held",
            "info",
            Ref(INSTALL_PLAN, one.key),
            f"{one.key}",
            says,
            one.message,
            "Why, and what to do",
        )


def of_machines(machines: Iterable[Machine]) -> Iterator[InboxItem]:
    for machine in machines:
        condition = placed_condition(machine)
        if condition is None or condition.status != "False" or machine.is_deleting:
            continue
        key = machine.metadata.key
        says = "has a recorded cluster that cannot be confirmed" if machine.request.config else "has no cluster"
        yield InboxItem(
            Urgency.HELD,
            condition.reason or "Unplaced",
            "warn",
            Ref(MACHINE, key),
            str(key),
            says,
            condition.message,
            "See why",
        )


def of_clusters(clusters: Iterable[Cluster]) -> Iterator[InboxItem]:
    for cluster in clusters:
        wrong = next((one for one in cluster.status.conditions if one.status == "False"), None)
        if wrong is None:
            continue
        name, machines = cluster.metadata.name, cluster.status.machines
        says = "is unreachable" if wrong.reason == "NoAnswer" else "cannot be used"
        if machines:
            says += f"; {machines} machine{'' if machines == 1 else 's'} placed there"
        ref = Ref(KUBEVIRT_CONFIG, Key("", name))
        yield InboxItem(Urgency.STUCK, "Cluster", "warn", ref, name, says, wrong.message, "See the cluster")


def of_assets(states: Iterable[AssetState]) -> Iterator[InboxItem]:
    for state in states:
        subject, asset = str(state.ref), state.asset.name
        match state.word:
            case "Fails":
                yield InboxItem(
                    Urgency.BROKEN, "Fails", "bad", state.ref, subject, "cannot be applied", state.why, "See why", asset
                )
            case "Paused" if state.live_summary and state.live_summary.paused_at:
                says = "is changed by another manager again and again, so the autopilot paused it"
                yield InboxItem(
                    Urgency.STUCK, "Paused", "warn", state.ref, subject, says, state.why, "Decide who owns it", asset
                )
            case "Staged":
                reboots = state.staged is not None and state.staged.matching_pools
                says = (
                    f"has a change that waits{', for nodes reboot when it is written' if reboots else ' for a review'}"
                )
                why = f"{state.why}. {state.staged.summary}" if state.staged and state.staged.summary else state.why
                yield InboxItem(
                    Urgency.REVIEW, "Staged", "info", state.ref, subject, says, why, "Review and release", asset
                )
            case "Differs":
                says = "differs; the difference is only reported"
                yield InboxItem(
                    Urgency.DRIFTED, "Differs", "warn", state.ref, subject, says, state.why, "See the change", asset
                )


def _profile(  # noqa: PLR0913, PLR0917 - a row of a table
    config: VirtPlatformConfig, urgency: Urgency, tag: str, tone: Tone, says: str, why: str, button: str
) -> InboxItem:
    name = config.metadata.name
    return InboxItem(urgency, tag, tone, Ref(VIRT_PLATFORM_CONFIG, Key("", name)), name, says, why, button)


def _condition(config: VirtPlatformConfig, type_: str) -> Condition | None:
    return next((one for one in config.status.conditions if one.type == type_), None)


def _pools_of(config: VirtPlatformConfig) -> set[str]:
    running = (item for item in config.status.items if item.state == "InProgress")
    return {pool.name for item in running if item.blast_radius for pool in item.blast_radius.pools}


def _why_stuck(pool: Pool) -> str:
    if pool.spec.paused:
        return f"pool {pool.name} is paused; resume it to continue"
    return f"pool {pool.name} has {pool.degradation}" if pool.degradation else ""
