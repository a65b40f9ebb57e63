"""Joins the decision on a rollout with what is recorded: whether a change is written now, or since when it waits."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

import msgspec

from virt_steward.controllers.autopilot.annotation_keys import ROLLOUT_RELEASE
from virt_steward.controllers.autopilot.live_summary import is_signed
from virt_steward.controllers.autopilot.rollouts.ledger import continued
from virt_steward.controllers.autopilot.rollouts.policy import REBOOTING, parse_releases
from virt_steward.controllers.autopilot.rollouts.staged import MOST_FIELDS, Occasion, StagedChange, recorded_fields
from virt_steward.controllers.autopilot.rollouts.staging import (
    NO_HOLDS,
    RolloutCase,
    RolloutHolds,
    StageChange,
    decide_rollout,
)
from virt_steward.holds.gates import ClosedGates, NotEvaluated
from virt_steward.objects.canonical import canonical
from virt_steward.objects.identity import kind_of, ref_of
from virt_steward.objects.ownership import owned_by
from virt_steward.platform.pools import pools_affected
from virt_steward.ssa.managers import AUTOPILOT

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from virt_steward.controllers.autopilot.observation import AutopilotObservation
    from virt_steward.controllers.autopilot.rollouts.policy import RolloutPolicy
    from virt_steward.controllers.autopilot.rollouts.staging import StagingVerdict
    from virt_steward.objects.field_changes import FieldChange
    from virt_steward.objects.identity import Ref, Regarding
    from virt_steward.platform.pools import Pool
    from virt_steward.ssa.drift_entries import FieldDrift
    from virt_steward.ssa.locks import Object


class StagingRecords(Protocol):
    """What is known of staged changes: to the controller its ledger, to a preview what the cluster shows."""

    def find(self, ref: Ref) -> StagedChange | None: ...
    def is_recorded(self, ref: Ref, change: StagedChange) -> bool: ...
    def started(self, pools: Iterable[Pool]) -> frozenset[str]: ...
    def unreviewed_pools(self, ref: Ref) -> frozenset[str]: ...


R = TypeVar("R", bound=StagingRecords)


@dataclass(frozen=True, slots=True)
class RolloutContext:
    """What bears on the rollout of one asset besides the object itself."""

    asset: str
    hco: Regarding
    policy: RolloutPolicy
    pools: tuple[Pool, ...] | None
    """All of the cluster; None: they cannot be read."""
    releases: frozenset[str]
    """Ids of changes that people have released."""
    has_predecessor: bool = False
    """Whether objects exist that another instance of the autopilot has created."""
    all_compared: bool = True
    """Whether there is a verdict on every object that exists and whose changes reboot nodes."""
    holds: RolloutHolds = NO_HOLDS

    @classmethod
    def of(
        cls, asset: str, observation: AutopilotObservation, policy: RolloutPolicy, pools: tuple[Pool, ...] | None
    ) -> RolloutContext:
        """Complete it by what the HyperConverged says."""
        releases = parse_releases(observation.context.hco.annotations.get(ROLLOUT_RELEASE))
        return cls(asset, observation.hco, policy, pools, releases)


@dataclass(frozen=True, slots=True)
class Staging:
    """One change, and what is decided on it."""

    change: StagedChange
    verdict: StagingVerdict
    pools: tuple[Pool, ...] = ()
    """Those whose nodes would reboot."""

    @property
    def is_held(self) -> bool:
        return isinstance(self.verdict, StageChange)

    @property
    def gates(self) -> tuple[str, ...]:
        """Gates that must be evaluated first: nothing else holds the change back."""
        gates = self.verdict.gates if isinstance(self.verdict, StageChange) else None
        return gates.names if isinstance(gates, NotEvaluated) else ()


class Stager(Generic[R]):
    """Decides with the recorded state; it writes nothing."""

    def __init__(self, ledger: R) -> None:
        self.ledger = ledger

    def judge(self, context: RolloutContext, wanted: Object, live: LiveFacts, now: datetime) -> Staging:
        """Decide on a change that was compared just now."""
        before = self.ledger.find(ref_of(wanted))
        pools = _affected(context, wanted, live.labels)
        change = StagedChange(
            staged_at=now,
            desired_hash=hashlib.sha256(canonical(wanted)).hexdigest(),
            matching_pools=tuple(pool.name for pool in pools or ()),
            asset=context.asset,
            occasion=live.occasion,
            live_hash=live.digest,
            fields=recorded_fields(live.changes),
            more_fields=max(len(live.changes) - MOST_FIELDS, 0),
        )
        return self.decide(context, ref_of(wanted), continued(change, before), pools, now)

    def recall(
        self, context: RolloutContext, wanted: Object, labels: Mapping[str, str], now: datetime
    ) -> Staging | None:
        """Decide again on a change that is staged, without comparing; None if it has to be compared."""
        before = self.ledger.find(ref_of(wanted))
        if before is None or not self.ledger.is_recorded(ref_of(wanted), before):
            return None
        pools = _affected(context, wanted, labels, before.matching_pools)
        if pools is not None and tuple(pool.name for pool in pools) != before.matching_pools:
            return None
        found = self.decide(context, ref_of(wanted), before, pools, now)
        return found if found.is_held else None

    def decide(
        self, context: RolloutContext, ref: Ref, change: StagedChange, pools: tuple[Pool, ...] | None, now: datetime
    ) -> Staging:
        """Decide on a change of this object that reboots nodes of these pools; None: which ones is unknown."""
        before = self.ledger.find(ref)
        case = RolloutCase(
            occasion=change.occasion,
            policy=context.policy,
            pools=pools,
            now=now,
            staged=before if change.continues(before) else None,
            is_released=before is not None and change.id == before.id and change.id in context.releases,
            started=self.ledger.started(pools or ()),
            held_pools=self.ledger.unreviewed_pools(ref),
            reboots=ref.kind in REBOOTING,
            holds=context.holds,
            overrides_freeze=before is not None and change.id == before.id and change.id in context.holds.overrides,
        )
        verdict = decide_rollout(case)
        gates = verdict.gates if isinstance(verdict, StageChange) else None
        answered = gates.message if isinstance(gates, ClosedGates) else ""
        return Staging(msgspec.structs.replace(change, closed_gates=answered), verdict, pools or ())


@dataclass(frozen=True, slots=True)
class LiveFacts:
    """What counts of the live object."""

    occasion: Occasion
    digest: str
    """Empty if it does not exist."""
    labels: Mapping[str, str]
    changes: tuple[FieldChange, ...] = ()
    """What a write would change of it."""


def occasion_of(live: Object, drifts: Iterable[FieldDrift], *, is_first_contact: bool) -> Occasion:
    """Why an existing object is written; `drifts` are those that others caused.

    An object that this process has neither written nor found in sync is met for the first time. Its writer by our field
    manager was another instance or another release of the autopilot, or an earlier process of ours: the values alone
    do not tell. Of kinds whose changes reboot no node, those that we have created are signed.
    """
    found = tuple(drifts)
    if is_first_contact and kind_of(live) not in REBOOTING:
        return Occasion.UPDATE if is_signed(live) else Occasion.FIRST_CONTACT
    if not is_first_contact:
        return Occasion.DRIFT if found else Occasion.UPDATE
    is_foreign = owned_by(live, AUTOPILOT.name) and any(drift.by for drift in found)
    return Occasion.DRIFT if is_foreign else Occasion.FIRST_CONTACT


def _affected(
    context: RolloutContext, wanted: Object, labels: Mapping[str, str], known: tuple[str, ...] = ()
) -> tuple[Pool, ...] | None:
    if kind_of(wanted) not in REBOOTING:
        return ()
    return None if context.pools is None else pools_affected(wanted, labels, context.pools, known)
