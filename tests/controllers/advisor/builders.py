"""Configs and what is seen around them, with sane defaults."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from virt_steward.apis.meta import Condition
from virt_steward.apis.profiles import LOAD_AWARE, ProfileOptions
from virt_steward.apis.virtplatformconfig import (
    GovernedTarget,
    Input,
    PlanItem,
    TargetRef,
    VirtPlatformConfigSpec,
    VirtPlatformConfigStatus,
)
from virt_steward.controllers.advisor.observation import AdvisorObservation, VirtPlatformConfig, VirtPlatformConfigMeta

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
EARLIER = NOON - timedelta(hours=1)
VERSION = "v1"
PLAN = "a" * 64
BEFORE, PLANNED = f"sha256:{'1' * 64}", f"sha256:{'2' * 64}"
FIVE = (Input("parallelMigrationsPerCluster", "5"),)
TEN = (Input("parallelMigrationsPerCluster", "10"),)


def an_item(name: str = "configure-descheduler", state: str = "Pending", **changes: Any) -> PlanItem:
    item = PlanItem(
        name=name,
        target_ref=TargetRef("operator.openshift.io/v1", "KubeDescheduler", name, "somewhere"),
        impact_severity="Low",
        managed_fields=("spec.mode",),
        hash=BEFORE,
        planned_hash=PLANNED,
        desired_state={"spec": {"mode": "Automatic"}},
        last_transition_time=EARLIER,
    )
    return msgspec.structs.replace(item, state=state, **changes)


def a_status(phase: str | None = "ReviewRequired", *items: PlanItem, **changes: Any) -> VirtPlatformConfigStatus:
    """Of the first generation, planned for action DryRun."""
    status = VirtPlatformConfigStatus(
        observed_generation=1,
        plan_hash=PLAN,
        plan_action="DryRun",
        plan_generation=1,
        operator_version=VERSION,
        applied_options=ProfileOptions(),
        inputs=FIVE,
        items=items or (an_item(),),
    )
    return msgspec.structs.replace(status, phase=phase, **changes)


def a_config(
    status: VirtPlatformConfigStatus | None = None,
    *,
    generation: int = 1,
    notes: Mapping[str, str] | None = None,
    **spec: Any,
) -> VirtPlatformConfig:
    annotations = {f"advisor.kubevirt.io/{name}": value for name, value in (notes or {}).items()}
    return VirtPlatformConfig(
        VirtPlatformConfigMeta(LOAD_AWARE, "", "uid", "7", generation=generation, annotations=annotations),
        VirtPlatformConfigSpec(profile=LOAD_AWARE, **spec),
        status or VirtPlatformConfigStatus(),
    )


def an_observation(config: VirtPlatformConfig, **around: Any) -> AdvisorObservation:
    """All is well, and every target as it was when the plan was made, or as planned once its item is completed."""
    usual = {item.name: item.planned_hash if item.state == "Completed" else item.hash for item in config.status.items}
    known = {"version": VERSION, "impact": "Medium", "inputs": FIVE, "hashes": usual}
    return AdvisorObservation(config, **{**known, **around})


def done(*items: PlanItem, phase: str = "Completed", **changes: Any) -> VirtPlatformConfigStatus:
    """After a plan was carried out."""
    completed = items or (an_item(state="Completed"),)
    governed = tuple(GovernedTarget(item.target_ref, item.managed_fields, item.planned_hash) for item in completed)
    return a_status(phase, *completed, **{"governed": governed, "applied_inputs": FIVE, **changes})


def true(type_: str) -> tuple[Condition, ...]:
    return (Condition(type_, "True", "Because", "", EARLIER),)
