"""Approvals by several people in one annotation."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from virt_steward.objects.approvals import (
    LONGEST_TEXT,
    MOST_LINES,
    PersonalApproval,
    add_approval,
    count_approvals,
    parse_approvals,
)

PLAN, OTHER = "b" * 64, "a" * 64
NOON = datetime(2030, 1, 7, 12, tzinfo=UTC)
UNKNOWN = "nobody is recorded as the requester, whose approval does not count: ask for a new plan"
names = st.text(st.characters(codec="utf-8", exclude_characters="\n"), min_size=1, max_size=512)


def lines(*users: str, plan: str = PLAN) -> str:
    return "\n".join(f"{plan} 2030-01-07T12:00:00Z - {user}" for user in users)


@pytest.mark.parametrize(
    ("text", "users"),
    [
        pytest.param("", (), id="none"),
        pytest.param(lines("ann", "bob"), ("ann", "bob"), id="two people"),
        pytest.param(lines("ann", "ann"), ("ann",), id="one person twice"),
        pytest.param(lines("ann") + "\n" + lines("bob", plan=OTHER), ("ann",), id="of another plan"),
        pytest.param(lines("ann", plan=PLAN[:12]), (), id="of a part of the hash"),
        pytest.param(lines("ann", plan=""), (), id="of no plan"),
        pytest.param(lines("Ann", "ann"), ("Ann", "ann"), id="names are case-sensitive"),
        pytest.param(lines("ann of the north", "ann"), ("ann of the north", "ann"), id="a name with spaces"),
        pytest.param(lines("ann "), ("ann ",), id="a name that ends with a space"),
        pytest.param(f"{PLAN} - -", (), id="a line without a name"),
        pytest.param(f"{PLAN} - - ", (), id="an empty name"),
        pytest.param(lines("a" * 513), (), id="a name that is too long"),
        pytest.param(f"\n\n{lines('ann')}\r\nnonsense\n", ("ann\r",), id="other lines"),
        pytest.param(lines(*map(str, range(MOST_LINES + 1))), (), id="too many lines"),
        pytest.param(lines("ann") + " " * LONGEST_TEXT, (), id="too long a text"),
        pytest.param(f"{PLAN} 99999-01-01 - ann", ("ann",), id="a time that cannot be read"),
        pytest.param(f"{PLAN} 0001-01-01T00:00:00+23:59 - ann", ("ann",), id="a time that does not exist"),
    ],
)
def test_approvals_are_counted_by_person_and_plan(text: str, users: tuple[str, ...]) -> None:
    assert count_approvals(text, PLAN, 2).users == users


def test_approvals_of_no_plan_do_not_count() -> None:
    assert count_approvals(lines("ann", plan=""), "", 1).users == ()


@pytest.mark.parametrize(
    ("users", "requester", "complete", "message"),
    [
        ((), None, False, "0 of 2 approvals; needs 2 more"),
        (("ann",), None, False, "1 of 2 approvals (ann); needs one more"),
        (("ann", "bob"), None, True, "2 of 2 approvals (ann, bob)"),
        (("ann", "bob", "eve"), None, True, "3 of 2 approvals (ann, bob, eve)"),
        (
            ("ann", "bob"),
            "bob",
            False,
            "1 of 2 approvals (ann); needs one more from somebody other than the requester bob",
        ),
        (("ann", "eve"), "bob", True, "2 of 2 approvals (ann, eve)"),
        (
            ("ann", "bob"),
            "",
            False,
            f"2 of 2 approvals (ann, bob); {UNKNOWN}",
        ),
    ],
)
def test_count_says_what_is_missing(
    users: tuple[str, ...], requester: str | None, complete: bool, message: str
) -> None:
    count = count_approvals(lines(*users), PLAN, 2, requester)
    assert (count.is_complete, str(count)) == (complete, message)


def test_adding_approval_drops_void_ones_and_keeps_lines_of_others() -> None:
    odd = f"{PLAN} yesterday 100%ok ann"
    text = "\n".join((odd, lines("eve", plan=OTHER), "nonsense", odd.replace("ok", "sure")))
    after = add_approval(text, PersonalApproval(PLAN, "bob", NOON, "looks good: 100 %"))
    assert after == f"{odd}\n{PLAN} 2030-01-07T12:00:00Z looks%20good:%20100%20%25 bob"


def test_adding_approval_stays_within_limits() -> None:
    after = add_approval(lines(*map(str, range(50))), PersonalApproval(PLAN, "bob", NOON))
    assert len(after.split("\n")) == MOST_LINES
    assert count_approvals(after, PLAN, 2).users[-1] == "bob"


@given(names, st.text(max_size=1024))
def test_approval_is_read_as_it_was_written(user: str, comment: str) -> None:
    given_ = PersonalApproval(PLAN, user, NOON, "" if comment == "-" else comment)
    [found] = parse_approvals(add_approval("", given_))
    assert found == given_


@given(st.text("ab -%\n", max_size=60))
def test_any_text_can_be_read(text: str) -> None:
    assert len(parse_approvals(text)) <= text.count("\n") + 1
