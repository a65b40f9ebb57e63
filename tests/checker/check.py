"""All invariants, in the order in which they are reported."""

from tests.checker.advisor import advisor_forces_listed_fields_only, advisor_writes_approved_targets_only
from tests.checker.approver import approvals_follow_the_rules, counts_are_exact
from tests.checker.autopilot import deletions_are_opted_out, ignored_fields_are_untouched, reboots_are_released
from tests.checker.facts import Facts, Invariant, Verdict
from tests.checker.history import History
from tests.checker.holds import freezes_hold, gates_hold, plans_are_not_held
from tests.checker.placement import machines_are_placed_knowingly, machines_stay_where_they_are
from tests.checker.writes import (
    configs_converge,
    fields_of_others_remain,
    is_effective,
    leaders_write_alone,
    nothing_is_applied_twice,
    silence_follows,
)

ALWAYS: tuple[Invariant, ...] = (
    advisor_writes_approved_targets_only,
    advisor_forces_listed_fields_only,
    reboots_are_released,
    ignored_fields_are_untouched,
    approvals_follow_the_rules,
    machines_stay_where_they_are,
    machines_are_placed_knowingly,
    leaders_write_alone,
    nothing_is_applied_twice,
    fields_of_others_remain,
    deletions_are_opted_out,
    freezes_hold,
    gates_hold,
    plans_are_not_held,
)
"""Hold at any time."""
AT_THE_END: tuple[Invariant, ...] = (configs_converge, counts_are_exact, silence_follows)
"""Hold once the faults have stopped and everything has settled."""


def check(history: History, facts: Facts, invariants: tuple[Invariant, ...] = (*ALWAYS, *AT_THE_END)) -> Verdict:
    found = tuple(one for invariant in invariants for one in invariant(history, facts))
    writes = sum(1 for one in history.writes if one.user in facts.replicas and is_effective(one))
    return Verdict(found, writes)
