"""What waits on a cluster that another instance has managed, though no node reboots: every cell, as a table."""

import re
from dataclasses import replace
from typing import Any

import pytest

from tests.controllers.autopilot.test_staging import (
    DELETE,
    FIRST,
    POLICIES,
    POOLS,
    UPDATE,
    a_case,
    is_written,
)
from virt_steward.catalog.load import load
from virt_steward.controllers.autopilot.annotation_keys import CREATED, CREATED_BY, SIGNER, UID_PENDING
from virt_steward.controllers.autopilot.rollouts.policy import Takeover
from virt_steward.controllers.autopilot.rollouts.staged import Occasion, data_key
from virt_steward.controllers.autopilot.rollouts.stager import occasion_of
from virt_steward.controllers.autopilot.watches import ref_of_asset
from virt_steward.objects.identity import Key


@pytest.mark.parametrize("pools", POOLS)
@pytest.mark.parametrize("policy", [policy for policy in POLICIES if policy != "immediate"])
@pytest.mark.parametrize("occasion", Occasion)
def test_what_reboots_no_node_waits_for_the_review_of_a_takeover_alone(
    policy: str, pools: str, occasion: Occasion
) -> None:
    case = replace(a_case(occasion, policy, pools), reboots=False)
    assert is_written(case) is (occasion not in (FIRST, DELETE))
    accepted = replace(case.policy, takeover=Takeover.ACCEPT)
    assert is_written(replace(case, policy=accepted))
    assert is_written(replace(case, is_released=True))
    still = replace(a_case(occasion, policy, pools), policy=accepted)
    assert is_written(still) is is_written(a_case(occasion, policy, pools)), "what reboots nodes waits as before"


def a_live(kind: str, created: str = "", *, signer: str = SIGNER) -> dict[str, Any]:
    group = "machineconfiguration.openshift.io" if kind == "MachineConfig" else "monitoring.coreos.com"
    metadata = {"name": "one", "uid": "u-1", "annotations": {CREATED: created, CREATED_BY: signer} if created else {}}
    return {"apiVersion": f"{group}/v1", "kind": kind, "metadata": metadata}


@pytest.mark.parametrize(
    ("kind", "created", "expected"),
    [
        pytest.param("PrometheusRule", "", FIRST, id="of another instance"),
        pytest.param("PrometheusRule", "u-1", UPDATE, id="of ours"),
        pytest.param("PrometheusRule", UID_PENDING, UPDATE, id="of a process of ours that ended"),
        pytest.param("PrometheusRule", "u-2", FIRST, id="a copy"),
        pytest.param("MachineConfig", "", FIRST, id="of a kind that is never signed"),
    ],
)
def test_first_contact_is_with_what_is_not_signed(kind: str, created: str, expected: Occasion) -> None:
    live = a_live(kind, created)
    assert occasion_of(live, (), is_first_contact=True) is expected
    assert occasion_of(live, (), is_first_contact=False) is UPDATE


def test_first_contact_is_with_what_version_0_1_signed() -> None:
    assert occasion_of(a_live("PrometheusRule", "u-1", signer=""), (), is_first_contact=True) is FIRST


def test_entries_have_keys_of_their_own_that_a_config_map_takes() -> None:
    refs = [ref_of_asset(asset, Key("openshift-cnv", "kubevirt")) for asset in load().assets]
    keys = {data_key(ref) for ref in refs}
    assert len(keys) == len(set(refs))
    assert [key for key in keys if not re.fullmatch(r"[-._a-zA-Z0-9]{1,253}", key)] == []
