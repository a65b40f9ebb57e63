"""The options about freezes and gates."""

import pytest

from virt_steward.cli.hold_flags import FreezeRequest, freeze_request
from virt_steward.settings import BadSetting


def test_override_needs_a_comment() -> None:
    with pytest.raises(BadSetting, match="add --comment that says why"):
        freeze_request("steward", " ", override=True)
    assert freeze_request("steward", "incident 7", override=True) == FreezeRequest("steward", overrides=True)
    assert freeze_request("steward", "", override=False) == FreezeRequest("steward", overrides=False)
