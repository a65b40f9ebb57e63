"""What holds for whatever there is to be seen, by an account of the rules that owes nothing to the code."""

from dataclasses import replace
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from tests.controllers.approver.builders import (
    CACHE,
    CACHE2,
    NOON,
    V1,
    V2,
    a_csv,
    a_pinned_install,
    a_plan,
    a_subscription,
    an_approver,
    fold,
    package_of,
    seen,
    waiting,
)
from virt_steward.apis.installplanapprover import Policy, VersionRange
from virt_steward.apis.meta import LabelSelector, Requirement, WindowSpec
from virt_steward.controllers.approver.checks import CHECKS, PlanCase
from virt_steward.controllers.approver.decide import decide, trace
from virt_steward.controllers.approver.observation import ApproverObservation, csvs_of
from virt_steward.controllers.approver.olm import Subscription, SubscriptionSpec
from virt_steward.controllers.approver.verdicts import ApprovePlan, WaitForPlan

CSVS = (V1, V2, CACHE, CACHE2)
PACKAGES = ("db", "cache")

csvs = st.sampled_from((*CSVS, ""))
packages = st.sampled_from((*PACKAGES, ""))
generations = st.integers(0, 2)
labels = st.dictionaries(st.sampled_from(("stage", "core")), st.sampled_from(("prod", "")))
requirements = st.builds(Requirement, st.just("core"), st.sampled_from(("Exists", "DoesNotExist")))
selectors = st.none() | st.builds(LabelSelector, labels, st.lists(requirements, max_size=1).map(tuple))
marked_csvs = st.builds(a_csv, csvs, mark=st.sampled_from(("", "db.shop", "cache.shop", "db.garden")))
policies: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional={
        "versions": st.builds(
            VersionRange, st.sampled_from(PACKAGES), st.sampled_from(("*", "^1", ">=9", "nonsense"))
        ).map(lambda one: (one,)),
        "first_install_only": st.booleans(),
        "minimum_age": st.sampled_from(("1h", "3650d", "999999999d", "soon")),
        "windows": st.builds(
            WindowSpec,
            st.sampled_from(("* * * * *", "0 22 * * *", "0 0 31 2 *", "nonsense")),
            st.sampled_from(("1h", "3650d", "99999999999d")),
            st.sampled_from(("UTC", "Europe/Oslo", "Mars/Olympus")),
        ).map(lambda one: (one,)),
        "allow_dependencies": st.booleans(),
        "within_range": st.booleans(),
        "allow_intermediate": st.booleans(),
    },
)

PLAN_CHANGES: dict[str, st.SearchStrategy[Any]] = {
    "csvs": st.lists(csvs, max_size=3, unique=True).map(tuple),
    "approval": st.sampled_from(("Automatic", "")),
    "approved": st.just(value=True),
    "phase": st.sampled_from(("Installing", "")),
    "generation": generations,
    "packages": st.dictionaries(csvs, packages, max_size=2),
    "brings": st.dictionaries(st.just("brought"), packages),
}
SPEC_CHANGES: dict[str, st.SearchStrategy[Any]] = {
    "package": packages,
    "starting_csv": csvs,
    "approval": st.sampled_from(("Manual", "Automatic")),
}
STATUS_CHANGES: dict[str, st.SearchStrategy[Any]] = {
    "current_csv": csvs,
    "installed_csv": csvs,
    "plan_generation": generations,
}
APPROVER_CHANGES: dict[str, st.SearchStrategy[Any]] = {
    "target_namespaces": st.sampled_from((("shop",), ("garden",))),
    "operator_names": st.sampled_from((("db",), ("db", "cache"))),
    "namespace_selector": selectors,
    "subscription_selector": selectors,
    "auto_approve": st.booleans(),
    "dry_run": st.booleans(),
    "policy": policies.map(lambda given: Policy(**given)),
}


def changed(draw: st.DrawFn, record: Any, changes: dict[str, st.SearchStrategy[Any]]) -> Any:
    """One field of it is something else."""
    name = draw(st.sampled_from(sorted(changes)))
    return msgspec.structs.replace(record, **{name: draw(changes[name])})


@st.composite
def subscriptions(draw: st.DrawFn, csv: str) -> Subscription:
    """One that asks for a CSV, by a person and pinned or nearly so."""
    one = a_subscription(package_of(csv), name=draw(st.text("ab", min_size=1, max_size=3)), pin=csv, current=csv)
    match draw(st.sampled_from(("pinned", "pinned", "automatic", "spec", "status", "generated"))):
        case "automatic":
            return msgspec.structs.replace(one, spec=SubscriptionSpec(one.spec.package))
        case "spec":
            return msgspec.structs.replace(one, spec=changed(draw, one.spec, SPEC_CHANGES))
        case "status":
            return msgspec.structs.replace(one, status=changed(draw, one.status, STATUS_CHANGES))
        case "generated":
            return a_subscription(package_of(csv), pin=csv, current=csv, approval="Automatic", generated=True)
    return one


@st.composite
def surroundings(draw: st.DrawFn) -> ApproverObservation:
    """A plan that should be approved, but for a thing or two."""
    wanted = draw(st.lists(st.sampled_from(CSVS), min_size=1, max_size=2, unique_by=package_of))
    brought = draw(st.sampled_from(((), (), ("cache",))))
    plan = a_plan(*wanted, brings=brought)
    asked = [draw(subscriptions(csv)) for csv in wanted if package_of(csv) not in brought]
    people = [an_approver(name) for name in draw(st.sampled_from((("ann",), ("ann", "bob"))))]
    found = seen(plan, *asked, approvers=people)
    for odd in draw(st.lists(st.sampled_from(ODDITIES), max_size=2)):
        found = odd(draw, found)
    return found


def an_odd_plan(draw: st.DrawFn, around: ApproverObservation) -> ApproverObservation:
    return replace(around, plan=changed(draw, around.plan, PLAN_CHANGES))


def an_odd_approver(draw: st.DrawFn, around: ApproverObservation) -> ApproverObservation:
    first, *others = around.approvers
    spec = changed(draw, first.spec, APPROVER_CHANGES)
    return replace(around, approvers=(msgspec.structs.replace(first, spec=spec), *others))


def another_subscription(draw: st.DrawFn, around: ApproverObservation) -> ApproverObservation:
    return replace(around, subscriptions=(*around.subscriptions, draw(subscriptions(draw(st.sampled_from(CSVS))))))


def another_plan(draw: st.DrawFn, around: ApproverObservation) -> ApproverObservation:
    csvs_of_it = draw(st.sampled_from((around.plan.csvs, around.plan.csvs[::-1], (V1,))))
    other = a_plan(*csvs_of_it, name="install-2", generation=draw(generations), approved=draw(st.booleans()))
    return replace(around, siblings=(*around.siblings, other))


def something_installed(draw: st.DrawFn, around: ApproverObservation) -> ApproverObservation:
    return replace(around, installed=(*around.installed, draw(marked_csvs)))


def something_unreadable(_draw: st.DrawFn, around: ApproverObservation) -> ApproverObservation:
    return replace(around, unreadable=("odd",))


def odd_labels(draw: st.DrawFn, around: ApproverObservation) -> ApproverObservation:
    return replace(around, namespace_labels=draw(st.none() | labels))


ODDITIES = (
    an_odd_plan,
    an_odd_approver,
    another_subscription,
    another_plan,
    something_installed,
    something_unreadable,
    odd_labels,
)


def is_wanted(csv: str, around: ApproverObservation) -> bool:
    """By the words of the specification, package by package."""
    for package in PACKAGES:
        ours = [one for one in around.subscriptions if one.spec.package == package]
        by_people = [one for one in ours if "olm.generated-by" not in one.metadata.annotations]
        told_by_plan = around.plan.packages.get(csv) == package
        if not told_by_plan and not any(csv in (one.status.current_csv, one.status.installed_csv) for one in ours):
            continue
        if any(one.spec.starting_csv == csv or one.spec.approval == "Automatic" for one in by_people):
            return any(csv in (one.status.current_csv, one.status.installed_csv) for one in ours)
        if any(one.status.installed_csv == csv for one in ours):
            return True
        marks = {mark for one in around.installed for mark in one.metadata.labels}
        if package in around.plan.brings.values() and not ours and told_by_plan:
            return f"operators.coreos.com/{package}.shop" not in marks
    return False


def is_pinned_by_a_person(csv: str, around: ApproverObservation) -> bool:
    return any(
        one.spec.starting_csv == csv and "olm.generated-by" not in one.metadata.annotations
        for one in around.subscriptions
    )


def is_allowed_without_pin(csv: str, around: ApproverObservation, policy: Policy | None) -> bool:
    """By the words of the how-to. All versions here are of the form N.0.0, and the name of a CSV has its package."""
    if policy is None:
        return False
    number = int(csv[-5])
    ours = [one for one in around.subscriptions if one.spec.package == package_of(csv)]
    installed = {one.status.installed_csv for one in ours} - {""}
    if any(int(one[-5]) >= number for one in installed):
        return False
    within = {"*": True, "^1": number == 1}
    if policy.within_range and any(within.get(r.range) and r.operator == package_of(csv) for r in policy.versions):
        return True
    pins = {one.spec.starting_csv for one in ours if "olm.generated-by" not in one.metadata.annotations} - {""}
    return policy.allow_intermediate and bool(pins) and all(int(pin[-5]) > number for pin in pins)


@given(surroundings())
def test_nothing_is_approved_that_the_rules_do_not_allow(around: ApproverObservation) -> None:
    plan = around.plan
    for opinion in decide(around, NOON).verdicts:
        if not isinstance(opinion.verdict, ApprovePlan):
            continue
        spec = opinion.approver.spec
        assert (plan.phase, plan.approval, plan.approved) == ("RequiresApproval", "Manual", False)
        allowed = {csv for csv in plan.csvs if csv and is_allowed_without_pin(csv, around, spec.policy)}
        assert all(csv and (csv in allowed or is_wanted(csv, around)) for csv in plan.csvs)
        assert allowed or any(is_pinned_by_a_person(csv, around) for csv in plan.csvs)
        assert not around.unreadable
        assert not [
            one for one in around.siblings if set(one.csvs) == set(plan.csvs) and one.generation > plan.generation
        ]
        assert spec.auto_approve
        assert not spec.dry_run
        assert spec.target_namespaces in ((), ("shop",))


@given(surroundings(), st.randoms(use_true_random=False))
def test_the_order_of_what_is_seen_changes_no_verdict(around: ApproverObservation, rng: Any) -> None:
    def shuffled(items: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(rng.sample(items, len(items)))

    other = replace(
        around,
        plan=msgspec.structs.replace(around.plan, csvs=shuffled(around.plan.csvs)),
        subscriptions=shuffled(around.subscriptions),
        siblings=shuffled(around.siblings),
        installed=shuffled(around.installed),
    )
    kinds = [[type(one.verdict) for one in decide(each, NOON).verdicts] for each in (around, other)]
    assert kinds[0] == kinds[1]


@given(surroundings())
def test_whatever_waits_can_be_reported(around: ApproverObservation) -> None:
    decision = decide(around, NOON)
    for opinion in decision.verdicts:
        if isinstance(opinion.verdict, WaitForPlan):
            assert decision.waits[opinion.approver.metadata.key] == opinion.verdict
            status = fold(opinion.approver, [around.plan], [waiting(around.plan, opinion.verdict)], NOON)
            assert msgspec.json.decode(msgspec.json.encode(status), type=type(status)) == status


@given(surroundings())
def test_trace_ends_with_the_check_that_decided(around: ApproverObservation) -> None:
    for one in decide(around, NOON).verdicts:
        results = trace(PlanCase(around, csvs_of(around), one.approver, NOON))
        assert [result.title for result in results] == [check.title for check in CHECKS]
        if isinstance(one.verdict, ApprovePlan):
            assert {result.result for result in results} == {"pass"}
            continue
        [decided] = [number for number, result in enumerate(results) if result.decided]
        assert {result.result for result in results[:decided]} <= {"pass"}
        assert (results[decided].result, results[decided].reason) == ("fail", one.verdict.message)
        assert {result.result for result in results[decided + 1 :]} <= {"not reached"}


def test_trace_has_unique_titles() -> None:
    titles = [check.title for check in CHECKS]
    assert len(set(titles)) == len(titles)
    assert {
        "Not approved yet",
        "Every CSV is pinned or allowed by the policy",
        "Inside a maintenance window",
        "Old enough",
    } <= set(titles)


def test_of_two_approvers_that_would_approve_the_first_acts() -> None:
    ann, bob = an_approver("ann"), an_approver("bob")
    around = a_pinned_install()
    for first, second in ((ann, bob), (bob, ann)):
        approval = decide(replace(around, approvers=(first, second)), NOON).approval
        assert approval
        assert approval.approver == first


def test_an_approver_that_waits_does_not_hold_back_another() -> None:
    ann, bob = an_approver("ann", dry_run=True), an_approver("bob")
    decision = decide(replace(a_pinned_install(), approvers=(ann, bob)), NOON)
    assert decision.approval
    assert decision.approval.approver == bob
    assert list(decision.waits) == [ann.metadata.key]


def test_without_approvers_nothing_is_approved_and_nobody_waits() -> None:
    decision = decide(replace(a_pinned_install(), approvers=()), NOON)
    assert decision.approval is None
    assert decision.waits == {}
