"""The conditions that an approver adds of its own. Each only narrows what is approved."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from virt_steward.controllers.approver.verdicts import PlanReason, WaitForPlan
from virt_steward.objects.durations import BadDuration, parse_duration
from virt_steward.objects.ranges import BadRange, Range
from virt_steward.objects.versions import BadVersion, Unversioned, Version, version_of
from virt_steward.objects.wallclock import rfc3339
from virt_steward.objects.windows import BadWindow, Closed, Window, state

if TYPE_CHECKING:
    from virt_steward.apis.installplanapprover import Policy
    from virt_steward.controllers.approver.checks import PlanCase
    from virt_steward.controllers.approver.observation import PlanCsv


def the_policy_is_understood(case: PlanCase) -> WaitForPlan | None:
    """All of it: who wrote one range wrong may have meant to hold back what another would let through."""
    if fault := fault_of(case.approver.spec.policy):
        return WaitForPlan(PlanReason.BAD_POLICY, f"{fault}; nothing is approved until that is corrected")
    return None


def versions_are_in_range(case: PlanCase) -> WaitForPlan | None:
    policy = case.approver.spec.policy
    ranges = {one.operator: one.range for one in policy.versions} if policy else {}
    for item in case.items:
        wanted = ranges.get(item.package or "")
        if wanted is None:
            continue
        version = _version(item)
        if isinstance(version, Unversioned):
            message = f"{version.message}, and the policy wants {wanted}: take {item.package} out of policy.versions"
            return WaitForPlan(PlanReason.VERSION_OUT_OF_RANGE, f"{message}, or approve it by hand")
        if version not in Range.parse(wanted):
            message = f"{item.csv} is not within {wanted}, which the policy wants: widen policy.versions"
            return WaitForPlan(PlanReason.VERSION_OUT_OF_RANGE, f"{message}, or approve it by hand")
    return None


def _version(item: PlanCsv) -> Version | Unversioned:
    """As the bundle says it, else as the name tells it: operators rebuilt as 1.2.3+0.1 are named like pre-releases."""
    try:
        return Version.parse(item.version)
    except BadVersion:
        return version_of(item.csv)


def only_first_installs(case: PlanCase) -> WaitForPlan | None:
    policy = case.approver.spec.policy
    for item in case.items:
        if policy and policy.first_install_only and item.replaced:
            doubt = ", does not tell its package and may be of this one" if item.replaced in item.unmarked else ""
            message = f"{item.replaced} is installed{doubt}, and the policy leaves upgrades to a person"
            return WaitForPlan(PlanReason.NOT_FIRST_INSTALL, f"{message}: approve it by hand")
    return None


def old_enough(case: PlanCase) -> WaitForPlan | None:
    policy = case.approver.spec.policy
    if not policy or not policy.minimum_age:
        return None
    try:
        ripe = case.seen.plan.metadata.creation_timestamp + parse_duration(policy.minimum_age)
    except OverflowError:
        fault = f"policy.minimumAge: {policy.minimum_age} is longer than any plan can live"
        return WaitForPlan(PlanReason.BAD_POLICY, f"{fault}; nothing is approved until that is corrected")
    if case.now < ripe:
        return WaitForPlan(
            PlanReason.TOO_YOUNG, f"the plan is younger than {policy.minimum_age}, until {rfc3339(ripe)}", ripe
        )
    return None


def a_window_is_open(case: PlanCase) -> WaitForPlan | None:
    policy = case.approver.spec.policy
    if not policy or not policy.windows:
        return None
    now = state(windows_of(policy), case.now)
    if not isinstance(now, Closed):
        return None
    if now.until is None:
        return WaitForPlan(PlanReason.OUTSIDE_WINDOW, "none of the policy's windows ever opens: correct its schedule")
    return WaitForPlan(PlanReason.OUTSIDE_WINDOW, f"the next window opens at {rfc3339(now.until)}", now.until)


CHECKS = (the_policy_is_understood, versions_are_in_range, only_first_installs, old_enough, a_window_is_open)


def windows_of(policy: Policy) -> list[Window]:
    return [Window.parse(one.schedule, one.duration, one.time_zone) for one in policy.windows]


@lru_cache(maxsize=128)  # every plan asks, and policies are few
def fault_of(policy: Policy | None) -> str | None:
    """What of the policy cannot be understood, though the server accepted it; None if all can."""
    if policy is None:
        return None
    field = ""
    try:
        for one in policy.versions:
            field = f"policy.versions of {one.operator}"
            Range.parse(one.range)
        field = "policy.minimumAge"
        if policy.minimum_age:
            parse_duration(policy.minimum_age)
        field = "policy.windows"
        windows_of(policy)
    except (BadWindow, BadRange, BadDuration) as error:
        return f"{field}: {error}"
    return None
