import pytest

from virt_steward.runtime.access import Access
from virt_steward.runtime.controller import Controller, Definition, Tools
from virt_steward.settings import BadSetting, chosen, lease_times


def a_definition(name: str) -> Definition:
    def build(tools: Tools) -> Controller:
        raise AssertionError(tools)

    return Definition(name, Access(name), build)


ADVISOR, APPROVER = a_definition("advisor"), a_definition("approver")


def test_controllers_come_once_each_in_the_order_in_which_they_are_named() -> None:
    assert chosen((ADVISOR, APPROVER), ("approver", "advisor", "approver")) == [APPROVER, ADVISOR]


def test_an_unknown_controller_is_answered_with_the_known_ones() -> None:
    with pytest.raises(BadSetting, match=r"no controller is called 'aprover'; there are: advisor, approver$"):
        chosen((ADVISOR, APPROVER), ("advisor", "aprover"))


def test_that_there_are_no_controllers_is_said() -> None:
    with pytest.raises(BadSetting, match="this version has no controllers"):
        chosen((), ("advisor",))


def test_a_lease_that_could_not_survive_one_missed_renewal_is_refused() -> None:
    with pytest.raises(BadSetting, match=r"--lease-retry 6 s is too long for --lease-duration 15 s: .* use 2.5 s"):
        lease_times(15, 6)
    assert lease_times(15, 2).usable == 10
