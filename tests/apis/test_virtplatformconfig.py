import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from tests.clients import a_client
from tests.widgets import install_crd
from virt_steward.apis.meta import Condition
from virt_steward.apis.profiles import (
    EXAMPLE,
    HIGHER_DENSITY,
    LOAD_AWARE,
    HigherDensityOptions,
    LoadAwareOptions,
    ProfileOptions,
)
from virt_steward.apis.virtplatformconfig import (
    API_VERSION,
    HISTORY_KEPT,
    VIRT_PLATFORM_CONFIG,
    VIRT_PLATFORM_CONFIG_CRD,
    BlastRadius,
    Execution,
    GovernedTarget,
    Input,
    PlanApproval,
    PlanItem,
    PoolRadius,
    TakenField,
    TargetRef,
    VirtPlatformConfigSpec,
    VirtPlatformConfigStatus,
)
from virt_steward.kube.client import Client
from virt_steward.kube.errors import Invalid
from virt_steward.objects.identity import Key, Ref
from virt_steward_demo.local.controlplane import ControlPlane

THE_EXAMPLE = Ref(VIRT_PLATFORM_CONFIG, Key("", EXAMPLE))
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HASH = f"sha256:{'a' * 64}"


def a_config(profile: str = LOAD_AWARE, name: str = "", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": API_VERSION,
        "kind": "VirtPlatformConfig",
        "metadata": {"name": name or profile},
        "spec": {"profile": profile, **spec},
    }


def load_aware(**options: Any) -> dict[str, Any]:
    return a_config(options={"loadAware": options})


def higher_density(**options: Any) -> dict[str, Any]:
    return a_config(HIGHER_DENSITY, options={"virtHigherDensity": options})


@pytest.fixture(scope="module")
def installed(control_plane: ControlPlane) -> ControlPlane:
    async def install() -> None:
        async with a_client(control_plane) as client:
            await install_crd(client, VIRT_PLATFORM_CONFIG_CRD.manifest())

    asyncio.run(install())
    return control_plane


@pytest.fixture
async def admin(installed: ControlPlane) -> AsyncIterator[Client]:
    async with a_client(installed) as client:
        yield client


@pytest.mark.parametrize(
    "config",
    [
        pytest.param(a_config(), id="a profile and nothing else"),
        pytest.param(a_config(EXAMPLE, action="Ignore"), id="to ignore the example"),
        pytest.param(a_config(action="Rollback", failurePolicy="Continue", waitTimeout="2h"), id="the way back"),
        pytest.param(load_aware(), id="no options in particular"),
        pytest.param(load_aware(deschedulingIntervalSeconds=86400, evictionLimitTotal=1000), id="the highest values"),
        pytest.param(load_aware(mode="Predictive", enablePSIMetrics=False), id="a prediction without reboots"),
        pytest.param(higher_density(enableSwap=False, memoryToRequestRatio=120), id="a little more without swap"),
        pytest.param(higher_density(ksmConfiguration={"enabled": False}), id="no sharing of pages"),
        pytest.param(a_config(window={"schedule": "0 22 * * FRI", "duration": "4h"}), id="a window"),
        pytest.param(a_config(notify="ops", bypassOptimisticLock=True), id="an endpoint and no lock"),
    ],
)
async def test_crd_accepts_valid_config(config: dict[str, Any], admin: Client) -> None:
    stored = await admin.create(config, dry_run=True)

    msgspec.convert(stored["spec"], VirtPlatformConfigSpec)


@pytest.mark.parametrize(
    ("config", "complaint"),
    [
        pytest.param(a_config(name="mine"), "must exactly match the spec.profile", id="another name"),
        pytest.param(a_config("high-density-swap"), "Unsupported value", id="a profile that nobody knows"),
        pytest.param(a_config(action="Force"), "Unsupported value", id="an unknown action"),
        pytest.param(a_config(options={}), "only options.loadAware may be set", id="empty options"),
        pytest.param(
            a_config(options={"virtHigherDensity": {}}), "only options.loadAware may be set", id="options of another"
        ),
        pytest.param(
            a_config(options={"loadAware": {}, "virtHigherDensity": {}}), "may be set", id="options of two profiles"
        ),
        pytest.param(
            a_config(HIGHER_DENSITY, options={"loadAware": {}}),
            "only options.virtHigherDensity may be set",
            id="density by load",
        ),
        pytest.param(
            a_config(EXAMPLE, options={"loadAware": {}}),
            "options.loadAware can only be used with profile 'load-aware-rebalancing'",
            id="options for the example",
        ),
        pytest.param(load_aware(deschedulingIntervalSeconds=59), "greater than or equal to 60", id="59 seconds"),
        pytest.param(load_aware(deschedulingIntervalSeconds=86401), "less than or equal to 86400", id="a long day"),
        pytest.param(load_aware(evictionLimitTotal=0), "greater than or equal to 1", id="no evictions"),
        pytest.param(load_aware(evictionLimitNode=101), "less than or equal to 100", id="101 evictions per node"),
        pytest.param(load_aware(devDeviationThresholds="Wild"), "Unsupported value", id="wild thresholds"),
        pytest.param(load_aware(enablePSIMetrics="yes"), "must be of type boolean", id="a text as switch"),
        pytest.param(higher_density(memoryToRequestRatio=99), "greater than or equal to 100", id="less than asked for"),
        pytest.param(
            higher_density(enableSwap=False),
            "memoryToRequestRatio > 120 requires enableSwap=true",
            id="150 % unswapped",
        ),
        pytest.param(a_config(waitTimeout="a day"), "such as 7d, 24h, 1h30m or 1.5h", id="a timeout in words"),
        pytest.param(a_config(notify="https://x"), "an endpoint is named", id="a URL as endpoint"),
    ],
)
async def test_crd_refuses_invalid_config(config: dict[str, Any], complaint: str, admin: Client) -> None:
    with pytest.raises(Invalid, match=complaint):
        await admin.create(config, dry_run=True)


async def test_crd_refuses_change_of_profile(admin: Client) -> None:
    await admin.create(a_config(EXAMPLE, action="Ignore"))
    try:
        with pytest.raises(Invalid, match="Profile is immutable"):
            await admin.apply(a_config(LOAD_AWARE, name=EXAMPLE), manager="tests", force=True)
    finally:
        await admin.delete(THE_EXAMPLE)


async def test_crd_defaults_equal_those_of_types(admin: Client) -> None:
    stored = await admin.create(load_aware(), dry_run=True)

    assert stored["spec"]["action"] == "DryRun"
    assert stored["spec"]["failurePolicy"] == "Abort"
    assert stored["spec"]["options"]["loadAware"] == {
        "deschedulingIntervalSeconds": 60,
        "mode": "Automatic",
        "enablePSIMetrics": True,
        "devDeviationThresholds": "AsymmetricLow",
    }
    seen = msgspec.convert(stored["spec"], VirtPlatformConfigSpec)
    assert seen.options == ProfileOptions(load_aware=LoadAwareOptions())


def test_crd_columns_are_action_impact_phase_and_age() -> None:
    (version,) = VIRT_PLATFORM_CONFIG_CRD.manifest()["spec"]["versions"]

    assert [column["name"] for column in version["additionalPrinterColumns"]] == ["Action", "Impact", "Phase", "Age"]


async def test_crd_keeps_full_status(admin: Client) -> None:
    target = TargetRef("machineconfiguration.openshift.io/v1", "MachineConfig", "99-worker-psi-karg")
    radius = BlastRadius((PoolRadius("worker", 3, 2),), ("a", "b", "c"), 3, 7, ("shop/db",), 1, "3 nodes reboot")
    item = PlanItem(
        name="enable-psi-metrics",
        target_ref=target,
        impact_severity="High",
        state="InProgress",
        message="Waiting for pool worker",
        diff="+ psi=1\n",
        desired_state={"spec": {"kernelArguments": ["psi=1"]}},
        managed_fields=("spec.kernelArguments",),
        takes=(TakenField("kubectl", ".spec.kernelArguments"),),
        hash=HASH,
        planned_hash=HASH,
        blast_radius=radius,
        last_transition_time=NOON,
    )
    status = VirtPlatformConfigStatus(
        phase="InProgress",
        impact_severity="High",
        observed_generation=2,
        plan_hash="b" * 64,
        plan_action="Apply",
        plan_generation=1,
        source_snapshot_hash=HASH,
        operator_version="v1",
        applied_options=ProfileOptions(virt_higher_density=HigherDensityOptions(memory_to_request_ratio=200)),
        inputs=(Input("parallelMigrationsPerCluster", "5"),),
        applied_inputs=(Input("parallelMigrationsPerCluster", "5"),),
        items=(item,),
        governed=(GovernedTarget(target, ("spec.kernelArguments",), HASH),),
        approval=PlanApproval("b" * 64, NOON, "ann", "tonight"),
        history=(Execution("b" * 64, NOON, "Completed", "ann", "tonight", "v1"),) * HISTORY_KEPT,
        pre_image="steward/psi-1",
        conditions=(Condition("InProgress", "True", "InProgress", "One of two items.", NOON),),
    )
    await admin.create(a_config(EXAMPLE, action="Ignore"))
    try:
        applied = await admin.apply(
            {key: value for key, value in a_config(EXAMPLE).items() if key != "spec"}
            | {"status": msgspec.to_builtins(status)},
            manager="tests-status",
            subresource="status",
        )
    finally:
        await admin.delete(THE_EXAMPLE)

    assert msgspec.convert(applied.object["status"], VirtPlatformConfigStatus) == status
