"""Versions that a policy approves although they are not the pinned one. Pure functions.

`withinRange` takes the ranges of `policy.versions` for what is wanted: every version inside is approved, and the pin
only says where to begin. `allowIntermediate` approves the versions through which OLM goes on its way to the pin. For
example, with 1.2.0 installed and 1.4.0 pinned, OLM may offer 1.3.0 first. Neither approves a downgrade, whatever the
catalog says replaces what; only a pin does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from virt_steward.controllers.approver.verdicts import PlanReason, WaitForPlan
from virt_steward.objects.ranges import Range
from virt_steward.objects.versions import BadVersion, Unversioned, Version, version_of

if TYPE_CHECKING:
    from virt_steward.apis.installplanapprover import Policy
    from virt_steward.controllers.approver.observation import PlanCsv


def allowance(item: PlanCsv, policy: Policy | None) -> str | None:
    """Why the policy approves the CSV without a pin; None if it does not. The policy must be valid."""
    if policy is None:
        return None
    if policy.within_range and range_of(item, policy) and out_of_range(item, policy) is None and _is_upgrade(item):
        return f"{item.csv} is in the range {range_of(item, policy)} of the policy, which has withinRange"
    if policy.allow_intermediate and _is_on_the_way(item):
        return f"{item.csv} is on the way from {item.installed} to {item.pin}, which is pinned"
    return None


def objection(item: PlanCsv, policy: Policy | None) -> WaitForPlan | None:
    """Why withinRange does not approve a CSV although its package has a range; None if that is not the matter."""
    if policy is None or not policy.within_range or range_of(item, policy) is None:
        return None
    if refusal := out_of_range(item, policy):
        return refusal
    older = [csv for csv in sorted(item.predecessors) if not _is_newer(item, csv)]
    if older:
        message = f"{item.csv} is not known to be newer than {', '.join(older)}, which is installed"
        remedy = f"set startingCSV to {item.csv} if that is wanted, or approve it manually"
        return WaitForPlan(PlanReason.NOT_AN_UPGRADE, f"{message}, and withinRange approves upgrades only: {remedy}")
    return None


def range_of(item: PlanCsv, policy: Policy) -> str | None:
    return next((one.range for one in policy.versions if one.operator == item.package), None)


def out_of_range(item: PlanCsv, policy: Policy) -> WaitForPlan | None:
    """Why the version of a CSV is not in the range of its package; None if it is, or if there is no range."""
    wanted = range_of(item, policy)
    if wanted is None:
        return None
    version = bundle_version(item)
    if isinstance(version, Unversioned):
        message = f"{version.message}, and the policy requires {wanted}: remove {item.package} from policy.versions"
        return WaitForPlan(PlanReason.VERSION_OUT_OF_RANGE, f"{message}, or approve it manually")
    if version not in Range.parse(wanted):
        message = f"{item.csv} is not in the range {wanted} of the policy: extend policy.versions"
        return WaitForPlan(PlanReason.VERSION_OUT_OF_RANGE, f"{message}, or approve it manually")
    return None


def bundle_version(item: PlanCsv) -> Version | Unversioned:
    """The version of the bundle, else of the name: an operator rebuilt as 1.2.3+0.1 is named like a pre-release."""
    return _parsed(item.version, item.csv)


def is_before(one: str, other: str) -> bool:
    """Whether a CSV is known, by its name, to be of a lower version than another."""
    earlier, later = version_of(one), version_of(other)
    return isinstance(earlier, Version) and isinstance(later, Version) and later.is_newer_than(earlier)


def _parsed(version: str, csv: str) -> Version | Unversioned:
    try:
        return Version.parse(version)
    except BadVersion:
        return version_of(csv)


def _is_upgrade(item: PlanCsv) -> bool:
    """Also if nothing is installed."""
    return all(_is_newer(item, csv) for csv in item.predecessors)


def _is_newer(item: PlanCsv, installed: str) -> bool:
    """By the bundles, or else by both names: a rebuild is named like a pre-release, and a bundle is not."""
    version = item.present_versions.get(installed)
    if version is None:
        return is_before(installed, item.csv)
    new, old = bundle_version(item), _parsed(version, installed)
    return isinstance(new, Version) and isinstance(old, Version) and new.is_newer_than(old)


def _is_on_the_way(item: PlanCsv) -> bool:
    """Newer than what is installed, and before every pin.

    Of a pinned version only the name is known, so names are compared. The name proves nothing on its own: where the
    bundle has a version with other numbers, the CSV may be beyond the pin.
    """
    named, bundled = version_of(item.csv), bundle_version(item)
    if isinstance(named, Unversioned) or isinstance(bundled, Unversioned) or named.core != bundled.core:
        return False
    is_before_pins = bool(item.pins) and all(is_before(item.csv, pin) for pin in item.pins)
    return is_before_pins and item.installed != "" and _is_upgrade(item)
