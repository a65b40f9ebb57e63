"""The approver approves what is pinned, when OLM asks for it, and counts exactly."""

from collections import Counter
from collections.abc import Iterator

from tests.checker.advisor import people_of
from tests.checker.facts import HOME, Facts, Violation, is_always
from tests.checker.history import History, Object, Version, value_at

PLANS = "installplans.operators.coreos.com"
SUBSCRIPTIONS = "subscriptions.operators.coreos.com"
APPROVERS = "installplanapprovers.operators.bapu.cloud"
APPROVALS = "operators.bapu.cloud/approvals"
STAMP = "operators.bapu.cloud/approved-by"


def approvals(history: History, facts: Facts) -> Iterator[Version]:
    """Writes of the approver by which a plan became approved."""
    for version in facts.by(history, "approver"):
        if version.ref.resource != PLANS or version.obj is None or not version.get("spec", "approved"):
            continue
        if not value_at(version.earlier, ("spec", "approved")):
            yield version


def approvals_follow_the_rules(history: History, facts: Facts) -> Iterator[Violation]:
    for version in approvals(history, facts):
        if version.uncertain:
            continue
        phase = value_at(version.earlier, ("status", "phase"), "")
        if phase != "RequiresApproval":
            yield Violation("approval", f"approved a plan in phase {phase or 'none'}", version)
        approvers = [one for ref in history.refs(APPROVERS) for one in facts.view(history, ref, version)]
        people = people_of(value_at(version.earlier, ("metadata", "annotations", APPROVALS), ""))
        count = max(map(len, people.values()))
        if not any(_covers(one, version) for one in approvers):
            yield Violation("approval", "approved a plan that no approver covers", version)
        elif not any(_covers(one, version) and _lets_begin(one, count) for one in approvers):
            yield Violation("approval", "approved what windows, freezes or a lack of approvals hold back", version)
        pins = _pins(history, facts, version)
        csvs = version.get("spec", "clusterServiceVersionNames", default=())
        if unpinned := [csv for csv in csvs if csv not in pins]:
            yield Violation("approval", f"approved {', '.join(unpinned)}, which no Subscription pins", version)


def _covers(approver: Version, plan: Version) -> bool:
    """Outside of the controllers' namespace, an approver covers its own namespace alone."""
    spec: Object = approver.get("spec", default={}) or {}
    if approver.obj is None or spec.get("dryRun") or spec.get("autoApprove") is False:
        return False
    if approver.ref.namespace not in (HOME, plan.ref.namespace):
        return False
    return not spec.get("targetNamespaces") or plan.ref.namespace in spec["targetNamespaces"]


def _lets_begin(approver: Version, people: int) -> bool:
    policy: Object = approver.get("spec", "policy", default={}) or {}
    windows, freezes = ([is_always(one["schedule"]) for one in policy.get(part, ())] for part in ("windows", "freezes"))
    has_people = people >= value_at(policy, ("approvals", "required"), 0)
    return has_people and (not windows or any(windows)) and not any(freezes)


def _pins(history: History, facts: Facts, plan: Version) -> set[str]:
    return {
        one.get("spec", "startingCSV", default="")
        for ref in history.refs(SUBSCRIPTIONS)
        if ref.namespace == plan.ref.namespace
        for one in facts.view(history, ref, plan)
        if one.obj is not None
    }


def counts_are_exact(history: History, facts: Facts) -> Iterator[Violation]:
    """At the end, each approver has counted the plans that bear its stamp and that the controller approved."""
    done = Counter(
        version.get("metadata", "annotations", STAMP, default="")
        for version in {one.uid: one for one in approvals(history, facts)}.values()
    )
    certain = not any(one.uncertain for ref in history.refs(PLANS) for one in history.of(ref))
    for ref in history.refs(APPROVERS):
        last = history.last(ref)
        if last is None or last.obj is None or ref in history.lost:
            continue
        counted = last.get("status", "approvedCount", default=0)
        if (counted > done[last.uid] and certain) or counted < done[last.uid]:
            yield Violation("count", f"{ref} counts {counted}, approved were {done[last.uid]}", last)
