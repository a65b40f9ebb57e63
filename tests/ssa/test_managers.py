from virt_steward.ssa.managers import ADVISOR, AUTOPILOT, MANAGERS, PATCHES


def test_no_two_writes_share_a_name() -> None:
    names = [one.name for one in (*MANAGERS, *PATCHES)]
    assert len(names) == len(set(names))


def test_the_intents_keep_the_names_under_which_earlier_installations_own_their_fields() -> None:
    assert (ADVISOR.name, AUTOPILOT.name) == ("virt-advisor-operator", "virt-platform-autopilot")


def test_all_other_writes_bear_the_name_of_this_project() -> None:
    others = {one.name for one in (*MANAGERS, *PATCHES)} - {ADVISOR.name, AUTOPILOT.name}
    assert [name for name in others if not name.startswith("virt-steward-")] == []
