import pytest

from virt_steward.ssa.managers import ADVISOR, AUTOPILOT, MANAGERS, PATCHES, Manager, UnknownManager, manager


@pytest.mark.parametrize("known", MANAGERS, ids=lambda known: known.name)
def test_a_manager_is_found_by_its_name(known: Manager) -> None:
    assert manager(known.name) is known


def test_a_manager_that_is_not_in_the_table_is_refused() -> None:
    with pytest.raises(UnknownManager, match="'kubectl' is no field manager of this project"):
        manager("kubectl")


def test_no_two_writes_share_a_name() -> None:
    names = [one.name for one in (*MANAGERS, *PATCHES)]
    assert len(names) == len(set(names))


def test_the_intents_keep_the_names_under_which_earlier_installations_own_their_fields() -> None:
    assert (ADVISOR.name, AUTOPILOT.name) == ("virt-advisor-operator", "virt-platform-autopilot")


def test_all_other_writes_bear_the_name_of_this_project() -> None:
    others = {one.name for one in (*MANAGERS, *PATCHES)} - {ADVISOR.name, AUTOPILOT.name}
    assert [name for name in others if not name.startswith("virt-steward-")] == []
