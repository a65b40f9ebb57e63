"""Configs and cluster states in any combination, sensible or not."""

from datetime import timedelta
from typing import get_args

import msgspec
from hypothesis import strategies as st

from tests.controllers.advisor.builders import (
    BEFORE,
    FIVE,
    NOON,
    PLAN,
    PLANNED,
    TEN,
    VERSION,
    a_config,
    a_status,
    an_item,
    true,
)
from virt_steward.apis.profiles import LoadAwareOptions, ProfileOptions
from virt_steward.apis.virtplatformconfig import Action, GovernedTarget, ItemState, PlanApprovalRules
from virt_steward.controllers.advisor.observation import ALWAYS, AdvisorObservation, InvalidWindow, VersionChange
from virt_steward.controllers.advisor.phases import PHASES
from virt_steward.holds.freezes import NOT_FROZEN, Frozen
from virt_steward.holds.gates import GateState
from virt_steward.objects.windows import Closed
from virt_steward.platform.health import NotReady, Ready

HASHES = st.sampled_from([BEFORE, PLANNED, "sha256:" + "3" * 64, ""])
INPUTS = st.sampled_from([(), FIVE, TEN])
OPTIONS = st.sampled_from([None, ProfileOptions(), ProfileOptions(load_aware=LoadAwareOptions(mode="Predictive"))])
ONE_APPROVAL = {"approvals": f"{PLAN} - - ann"}
NOTES = st.sampled_from([{}, {"approved-plan": PLAN, "approved-by": "ann"}, {"approved-plan": "b" * 64}, ONE_APPROVAL])
NOTES = st.sampled_from(
    [
        {},
        {"approved-plan": PLAN, "approved-by": "ann"},
        {"approved-plan": "b" * 64},
        {"override-freeze": PLAN, "override-freeze-by": "ann", "override-freeze-comment": "urgent"},
    ]
)
WINDOWS = st.sampled_from([ALWAYS, Closed(None), Closed(NOON + timedelta(hours=1)), InvalidWindow("none")])
FREEZES = st.sampled_from(
    [NOT_FROZEN, Frozen("spec.freeze", until=NOON + timedelta(hours=1)), Frozen("x", problem="y")]
)
GATES = st.sampled_from([{}, {"pools": GateState("pools", is_open=True)}, {"pools": GateState("pools", is_open=False)}])
LOGICS = st.sampled_from(
    [None, VersionChange(), VersionChange(("a",)), VersionChange(("a",), (an_item("a", "Completed"),))]
)


@st.composite
def observations(draw: st.DrawFn) -> AdvisorObservation:
    names = draw(st.lists(st.sampled_from("abc"), unique=True, max_size=3))
    items = tuple(
        an_item(name, draw(st.sampled_from(get_args(ItemState))), hash=draw(HASHES), planned_hash=draw(HASHES))
        for name in names
    )
    status = a_status(
        draw(st.sampled_from([None, *PHASES])),
        applied_options=draw(OPTIONS),
        inputs=draw(INPUTS),
        applied_inputs=draw(INPUTS),
        plan_action=draw(st.sampled_from([None, *get_args(Action)])),
        plan_generation=draw(st.integers(0, 3)),
        observed_generation=draw(st.integers(0, 3)),
        operator_version=draw(st.sampled_from([VERSION, "v2", ""])),
        governed=tuple(
            GovernedTarget(item.target_ref, item.managed_fields, PLANNED) for item in items if draw(st.booleans())
        ),
        conditions=true("InputDependencyDrift") if draw(st.booleans()) else (),
    )
    config = a_config(
        msgspec.structs.replace(status, items=items),
        generation=draw(st.integers(1, 3)),
        notes=draw(NOTES),
        action=draw(st.sampled_from(get_args(Action))),
        options=draw(OPTIONS),
        failure_policy=draw(st.sampled_from(["Abort", "Continue"])),
        bypass_optimistic_lock=draw(st.booleans()),
        wait_timeout=draw(st.sampled_from([None, "1s", "2h"])),
        approvals=draw(st.sampled_from([None, None, PlanApprovalRules(1), PlanApprovalRules(2)])),
    )
    return AdvisorObservation(
        config,
        version=VERSION,
        impact="Medium",
        missing=draw(st.sampled_from([(), (), ("it",)])),
        unsettled=draw(st.sampled_from(["", "", "not yet"])),
        inputs=draw(INPUTS),
        hashes={name: draw(HASHES) for name in names},
        written=frozenset(name for name in names if draw(st.booleans())),
        health={name: Ready("ready") if draw(st.booleans()) else NotReady("1/3") for name in names},
        logic=draw(LOGICS),
        window=draw(WINDOWS),
        freeze=draw(FREEZES),
        gates_wanted=draw(st.sampled_from([(), ("pools",)])),
        gates=draw(GATES),
    )
