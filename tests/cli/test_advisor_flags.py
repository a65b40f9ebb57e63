import pytest

from virt_steward.cli.advisor_flags import DOCS, HCO, VERSION, asking, options
from virt_steward.controllers.advisor.options import AdvisorOptions
from virt_steward.settings import BadSetting


def test_nothing_said_means_the_usual() -> None:
    usual = AdvisorOptions()
    assert options(HCO, VERSION, DOCS, usual.namespace) == usual


def test_example_profile_is_off_unless_set() -> None:
    assert not asking(HCO).example_profile
    assert asking(HCO, example_profile=True).example_profile


@pytest.mark.parametrize("text", ["", "foo", "/foo", "foo/", "a/b/c"])
def test_a_platform_is_named_in_full_unlike(text: str) -> None:
    with pytest.raises(BadSetting, match="write its namespace and name, such as openshift-cnv/"):
        options(text, VERSION, DOCS, "here")


def test_a_version_has_a_name() -> None:
    with pytest.raises(BadSetting, match="--operator-version"):
        options(HCO, "", DOCS, "here")
