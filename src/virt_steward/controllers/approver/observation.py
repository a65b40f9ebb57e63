"""The frozen observation of one plan, and what follows for each of its CSVs."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from virt_steward.apis.installplanapprover import InstallPlanApproverSpec, InstallPlanApproverStatus
from virt_steward.controllers.approver.olm import EPOCH
from virt_steward.holds.freezes import NOT_FROZEN
from virt_steward.holds.gate_settings import READY_MADE_ONLY
from virt_steward.objects.meta import Meta

if TYPE_CHECKING:
    from collections.abc import Mapping

    from virt_steward.controllers.approver.olm import InstalledCsv, InstallPlan, Subscription
    from virt_steward.holds.freezes import FreezeState
    from virt_steward.holds.gate_settings import GateSettings
    from virt_steward.holds.gates import GateState


class ManagedFieldsEntry(msgspec.Struct, frozen=True):
    """That a field manager wrote something, and when."""

    manager: str = ""
    time: datetime = EPOCH


class ApproverMeta(Meta, frozen=True, rename="camel"):
    creation_timestamp: datetime = EPOCH
    generation: int = 0
    managed_fields: tuple[ManagedFieldsEntry, ...] = ()


class Approver(msgspec.Struct, frozen=True):
    """An InstallPlanApprover."""

    metadata: ApproverMeta
    spec: InstallPlanApproverSpec = InstallPlanApproverSpec()
    status: InstallPlanApproverStatus = InstallPlanApproverStatus()


@dataclass(frozen=True, slots=True)
class ApproverObservation:
    """One plan and everything that the checks need."""

    plan: InstallPlan
    subscriptions: tuple[Subscription, ...]
    """All of the plan's namespace."""
    unreadable: tuple[str, ...]
    """Subscriptions of the namespace that could not be read, by name."""
    siblings: tuple[InstallPlan, ...]
    """Other plans of the namespace with the same CSVs; all others cost time, and decide nothing."""
    installed: tuple[InstalledCsv, ...]
    """All CSVs of the namespace, without copies."""
    namespace_labels: Mapping[str, str] | None
    """None: the namespace has not been read yet."""
    approvers: tuple[Approver, ...]
    """All of them, the oldest first."""
    policy_namespaces: frozenset[str] = frozenset()
    """Where approvers cover what their spec says; elsewhere they cover their own namespace alone."""
    denied_policies: tuple[str, ...] = ()
    """Policy namespaces whose approvers are forbidden to read: one of them may cover the plan."""
    freeze: FreezeState = NOT_FROZEN
    """That of the installation."""
    gates: Mapping[str, GateState] = field(default_factory=dict)
    """What gates answered, by name; empty until somebody has asked."""
    gate_settings: GateSettings = READY_MADE_ONLY
    is_denied: bool = False
    """Something in the namespace is forbidden to read: what seems absent may exist."""


@dataclass(frozen=True, slots=True)
class PlanCsv:
    """One CSV of a plan, with what the namespace has of its package."""

    csv: str
    package: str | None
    """None: unknown, or sources disagree."""
    subscriptions: tuple[Subscription, ...]
    """Those for that package."""
    present: tuple[str, ...]
    """CSVs of that package in the namespace, however they were installed."""
    is_brought: bool
    """The plan creates its Subscription."""
    version: str = ""
    """The version of its bundle; empty if unknown."""
    unmarked: tuple[str, ...] = ()
    """Those of `present` whose package is unknown: they may be of another."""
    present_versions: Mapping[str, str] = field(default_factory=dict)
    """The versions of the bundles of `present`, as far as they are known."""

    @property
    def is_new_dependency(self) -> bool:
        """Whether the plan brings its Subscription along, and nothing of that package is in the namespace."""
        return self.is_brought and not self.subscriptions and not self.present

    @property
    def is_pinned(self) -> bool:
        """Whether a person pinned it; the startingCSV of a Subscription that OLM made does not count."""
        return any(one.spec.starting_csv == self.csv and not one.is_generated for one in self.subscriptions)

    @property
    def is_automatic(self) -> bool:
        """Whether a person set its Subscription to Automatic."""
        return any(one.spec.approval == "Automatic" and not one.is_generated for one in self.subscriptions)

    @property
    def is_wanted(self) -> bool:
        """Whether installing it was requested, or changes nothing."""
        return self.is_pinned or self.is_automatic or self.is_new_dependency or self.is_installed

    @property
    def is_current(self) -> bool:
        """Whether OLM offers it now, or it is installed."""
        return any(self.csv in (one.status.current_csv, one.status.installed_csv) for one in self.subscriptions)

    @property
    def is_installed(self) -> bool:
        return any(self.csv == one.status.installed_csv for one in self.subscriptions)

    @property
    def installed(self) -> str:
        """The installed CSV; empty before the first installation."""
        return next((one.status.installed_csv for one in self.subscriptions if one.status.installed_csv), "")

    @property
    def replaced(self) -> str:
        """Another CSV of the package in the namespace, even if no Subscription refers to it; empty if there is none."""
        known = (csv for csv in self.present if csv not in self.unmarked)
        return next((csv for csv in (self.installed, *known, *self.unmarked) if csv not in ("", self.csv)), "")

    @property
    def is_left_to_olm(self) -> bool:
        """Whether all its Subscriptions were made by OLM, for a dependency."""
        return bool(self.subscriptions) and all(one.is_generated for one in self.subscriptions)

    @property
    def predecessors(self) -> frozenset[str]:
        """Other CSVs of the package in the namespace, and those that its Subscriptions call installed."""
        known = {csv for csv in self.present if csv not in self.unmarked}
        installed = {one.status.installed_csv for one in self.subscriptions}
        return frozenset((known | installed) - {"", self.csv})

    @property
    def pins(self) -> tuple[str, ...]:
        """What people pinned, by Subscription."""
        pins = (one.spec.starting_csv for one in self.subscriptions if not one.is_generated)
        return tuple(pin for pin in pins if pin)

    @property
    def pin(self) -> str:
        return next(iter(self.pins), "")


def csvs_of(observation: ApproverObservation) -> tuple[PlanCsv, ...]:
    return tuple(_item(csv, observation) for csv in observation.plan.csvs)


def _item(csv: str, observation: ApproverObservation) -> PlanCsv:
    package = _package_of(csv, observation)
    subscriptions = tuple(one for one in observation.subscriptions if one.spec.package == package)
    present = [one for one in observation.installed if one.metadata.name == csv or (package and one.is_of(package))]
    return PlanCsv(
        csv,
        package,
        subscriptions,
        tuple(sorted(one.metadata.name for one in present)),
        is_brought=package in observation.plan.brings.values(),
        version=observation.plan.versions.get(csv, ""),
        unmarked=tuple(sorted(one.metadata.name for one in present if one.is_unmarked and one.metadata.name != csv)),
        present_versions={one.metadata.name: one.version for one in present if one.version},
    )


def _package_of(csv: str, observation: ApproverObservation) -> str | None:
    """The package that the plan and the Subscriptions agree on. The name of a CSV proves nothing."""
    if not csv:  # it would match every field that is not set
        return None
    named = {
        one.spec.package
        for one in observation.subscriptions
        if csv in (one.status.current_csv, one.status.installed_csv)
    }
    if csv in observation.plan.packages:
        named.add(observation.plan.packages[csv])
    return next(iter(named)) or None if len(named) == 1 else None
