"""The frozen record of what was seen around one plan, and what follows for each of its CSVs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from virt_steward.apis.installplanapprover import InstallPlanApproverSpec, InstallPlanApproverStatus
from virt_steward.controllers.approver.olm import EPOCH
from virt_steward.objects.meta import Meta

if TYPE_CHECKING:
    from collections.abc import Mapping

    from virt_steward.controllers.approver.olm import InstalledCsv, InstallPlan, Subscription


class ManagedFieldsEntry(msgspec.Struct, frozen=True):
    """That a field manager has written something, and when."""

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
    """One plan and all that can bear on it."""

    plan: InstallPlan
    subscriptions: tuple[Subscription, ...]
    """All of the plan's namespace."""
    unreadable: tuple[str, ...]
    """Subscriptions of the namespace that could not be read, by name."""
    siblings: tuple[InstallPlan, ...]
    """Other plans of the namespace."""
    installed: tuple[InstalledCsv, ...]
    """All CSVs of the namespace that are no copies."""
    namespace_labels: Mapping[str, str] | None
    """None: the namespace has not been seen yet."""
    approvers: tuple[Approver, ...]
    """All of them, the oldest first."""
    is_denied: bool = False
    """Something in the namespace may not be read: what seems absent may be there."""


@dataclass(frozen=True, slots=True)
class PlanCsv:
    """One CSV of a plan, in the light of the namespace."""

    csv: str
    package: str | None
    """None: it cannot be told, or sources disagree."""
    subscriptions: tuple[Subscription, ...]
    """Those for that package."""
    present: tuple[str, ...]
    """CSVs of that package that are in the namespace, whoever brought them."""
    is_brought: bool
    """The plan would create its Subscription."""
    version: str = ""
    """As its bundle says; empty if it says nothing."""
    unmarked: tuple[str, ...] = ()
    """Those of `present` that do not tell their package: they may be of another."""

    @property
    def is_new_dependency(self) -> bool:
        """Whether the plan brings its Subscription along, and nothing of that package is in the namespace."""
        return self.is_brought and not self.subscriptions and not self.present

    @property
    def is_pinned(self) -> bool:
        """Whether a person pinned it; what OLM writes into a Subscription that it makes itself is no pin."""
        return any(one.spec.starting_csv == self.csv and not one.is_generated for one in self.subscriptions)

    @property
    def is_automatic(self) -> bool:
        """Whether a person wished for every version of it."""
        return any(one.spec.approval == "Automatic" and not one.is_generated for one in self.subscriptions)

    @property
    def is_wanted(self) -> bool:
        """Whether installing it is what somebody asked for, or changes nothing."""
        return self.is_pinned or self.is_automatic or self.is_new_dependency or self.is_installed

    @property
    def is_current(self) -> bool:
        """Whether it is what OLM offers now, or what runs already."""
        return any(self.csv in (one.status.current_csv, one.status.installed_csv) for one in self.subscriptions)

    @property
    def is_installed(self) -> bool:
        return any(self.csv == one.status.installed_csv for one in self.subscriptions)

    @property
    def installed(self) -> str:
        """The CSV that runs now; empty before the first installation."""
        return next((one.status.installed_csv for one in self.subscriptions if one.status.installed_csv), "")

    @property
    def replaced(self) -> str:
        """Another CSV of the package that is there, also if no Subscription knows of it; empty if none is."""
        known = (csv for csv in self.present if csv not in self.unmarked)
        return next((csv for csv in (self.installed, *known, *self.unmarked) if csv not in ("", self.csv)), "")

    @property
    def is_left_to_olm(self) -> bool:
        """Whether all that is known of it was made by OLM, for a dependency."""
        return bool(self.subscriptions) and all(one.is_generated for one in self.subscriptions)

    @property
    def pin(self) -> str:
        pins = (one.spec.starting_csv for one in self.subscriptions if not one.is_generated)
        return next((pin for pin in pins if pin), "")


def csvs_of(seen: ApproverObservation) -> tuple[PlanCsv, ...]:
    return tuple(_item(csv, seen) for csv in seen.plan.csvs)


def _item(csv: str, seen: ApproverObservation) -> PlanCsv:
    package = _package_of(csv, seen)
    subscriptions = tuple(one for one in seen.subscriptions if one.spec.package == package)
    present = [one for one in seen.installed if one.metadata.name == csv or (package and one.is_of(package))]
    return PlanCsv(
        csv,
        package,
        subscriptions,
        tuple(sorted(one.metadata.name for one in present)),
        is_brought=package in seen.plan.brings.values(),
        version=seen.plan.versions.get(csv, ""),
        unmarked=tuple(sorted(one.metadata.name for one in present if one.is_unmarked and one.metadata.name != csv)),
    )


def _package_of(csv: str, seen: ApproverObservation) -> str | None:
    """What the plan and the Subscriptions say, if they say one thing. A CSV's name proves nothing."""
    if not csv:  # it would equal whatever is not set
        return None
    told = {one.spec.package for one in seen.subscriptions if csv in (one.status.current_csv, one.status.installed_csv)}
    if csv in seen.plan.packages:
        told.add(seen.plan.packages[csv])
    return next(iter(told)) or None if len(told) == 1 else None
