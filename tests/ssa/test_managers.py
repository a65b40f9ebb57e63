from virt_steward.ssa.managers import ADVISOR, AUTOPILOT, MANAGERS, PATCHES


def test_manager_names_are_unique() -> None:
    names = [one.name for one in (*MANAGERS, *PATCHES)]
    assert len(names) == len(set(names))


def test_manager_names_of_earlier_installations_are_kept() -> None:
    assert (ADVISOR.name, AUTOPILOT.name) == ("virt-advisor-operator", "virt-platform-autopilot")


def test_other_manager_names_have_project_prefix() -> None:
    others = {one.name for one in (*MANAGERS, *PATCHES)} - {ADVISOR.name, AUTOPILOT.name}
    assert [name for name in others if not name.startswith("virt-steward-")] == []
