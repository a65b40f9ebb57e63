import asyncio
import ssl
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from tests.clients import a_client
from virt_steward.apis.crd import Crd
from virt_steward.apis.crds import CRDS
from virt_steward.apis.installplanapprover import (
    HISTORY_KEPT,
    INSTALL_PLAN_APPROVER,
    INSTALL_PLAN_APPROVER_CRD,
    PENDING_SHOWN,
    ApprovalRecord,
    InstallPlanApproverSpec,
    InstallPlanApproverStatus,
    PendingPlan,
)
from virt_steward.apis.meta import Condition
from virt_steward.kube.client import APPLY, Client
from virt_steward.kube.discovery import CUSTOM_RESOURCE_DEFINITION
from virt_steward.kube.errors import Invalid, NotFound, NotServed
from virt_steward.objects.identity import Key, Ref
from virt_steward_demo.local.controlplane import ControlPlane
from virt_steward_demo.simulation.conditions import is_true

DEADLINE = 20
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
CRD = Ref(CUSTOM_RESOURCE_DEFINITION, Key("", "installplanapprovers.operators.bapu.cloud"))


def an_approver(spec: dict[str, Any], name: str = "pinned") -> dict[str, Any]:
    return {
        "apiVersion": "operators.bapu.cloud/v1alpha1",
        "kind": "InstallPlanApprover",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }


def with_window(**changed: str) -> dict[str, Any]:
    return {"policy": {"windows": [{"schedule": "0 22 * * FRI", "duration": "4h", **changed}]}}


def with_ranges(*ranges: str) -> dict[str, Any]:
    return {"policy": {"versions": [{"operator": f"operator-{i}", "range": text} for i, text in enumerate(ranges)]}}


async def until_served(client: Client) -> None:
    async with asyncio.timeout(DEADLINE):
        while True:
            await client.discovery.refresh()
            with suppress(NotServed):
                await client.list(INSTALL_PLAN_APPROVER)
                return
            await asyncio.sleep(0.05)


async def until_gone(client: Client, ref: Ref) -> None:
    async with asyncio.timeout(DEADLINE):
        while True:
            try:
                await client.get(ref)
            except NotFound:
                return
            await asyncio.sleep(0.05)


@pytest.fixture(scope="module")
def installed(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """The control plane while it has our CRD."""

    async def install() -> None:
        async with a_client(control_plane) as client:
            await client.apply(INSTALL_PLAN_APPROVER_CRD.manifest(), manager="tests")
            await until_served(client)

    async def remove() -> None:
        async with a_client(control_plane) as client:
            await client.delete(CRD)
            await until_gone(client, CRD)

    asyncio.run(install())
    yield control_plane
    asyncio.run(remove())


@pytest.fixture
async def admin(installed: ControlPlane) -> AsyncIterator[Client]:
    async with a_client(installed) as client:
        yield client


@pytest.mark.parametrize("crd", CRDS, ids=lambda crd: str(crd.kind))
def test_the_server_accepts_without_a_warning_the_crd_of(crd: Crd, control_plane: ControlPlane) -> None:
    manifest = crd.manifest()
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{manifest['metadata']['name']}"
    request = urllib.request.Request(
        f"{control_plane.server}{path}?dryRun=All&fieldManager=tests&fieldValidation=Strict",
        method="PATCH",
        headers={"Authorization": f"Bearer {control_plane.token}", "Content-Type": APPLY},
        data=msgspec.json.encode(manifest),
    )
    trust = ssl.create_default_context(cadata=control_plane.authority.certificate.decode())

    with urllib.request.urlopen(request, context=trust, timeout=DEADLINE) as answer:
        assert answer.headers["Warning"] is None


async def test_the_crd_is_structural_and_established(admin: Client) -> None:
    conditions = (await admin.get(CRD))["status"]["conditions"]

    assert is_true(conditions, "Established")
    assert is_true(conditions, "NamesAccepted")
    assert "NonStructuralSchema" not in [condition["type"] for condition in conditions]


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({}, id="nothing: all plans"),
        pytest.param({"targetNamespaces": ["prod"], "operatorNames": ["cert-manager.v"]}, id="namespaces and names"),
        pytest.param({"namespaceSelector": {"matchLabels": {"team": "a"}}}, id="namespace labels"),
        pytest.param(
            {"subscriptionSelector": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}},
            id="a label expression",
        ),
        pytest.param({"policy": {"minimumAge": "7d"}}, id="an age in days"),
        pytest.param({"targetNamespaces": ["ns-a", "ns-b", "ns-a"]}, id="a namespace named twice"),
        pytest.param({"operatorNames": ["etcd", "etcd"]}, id="an operator named twice"),
        pytest.param({"policy": {"minimumAge": "1h30m"}}, id="an age in hours and minutes"),
        pytest.param({"policy": {"minimumAge": "1.5h.5s300\N{MICRO SIGN}s"}}, id="an age in Go's syntax"),
        pytest.param(with_window(), id="a window"),
        pytest.param(with_window(schedule="*/15 0-6,22 1-7 Jan-MAR mon,WED-fri"), id="a window with lists and steps"),
        pytest.param(with_window(timeZone="America/Argentina/Buenos_Aires"), id="a time zone"),
        pytest.param(with_window(timeZone="Etc/GMT+5"), id="a time zone with an offset"),
        pytest.param(
            with_ranges(">=1.4.0 <2.0.0", "~1.4", "^1.4.2 || 2.x", "1.4.2-rc.1+build.5", "*", "> 1, < 2", "!=1.2.3"),
            id="ranges of versions",
        ),
        pytest.param(
            {"policy": {"withinRange": True, "versions": [{"operator": "a", "range": "1"}]}}, id="to follow a range"
        ),
        pytest.param({"notify": "ops", "dryRun": True}, id="a dry run that notifies"),
    ],
)
async def test_a_spec_may_ask_for(spec: dict[str, Any], admin: Client) -> None:
    stored = await admin.create(an_approver(spec), dry_run=True)

    msgspec.convert(stored["spec"], InstallPlanApproverSpec)


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        pytest.param({"targetNamespaces": [""]}, r"targetNamespaces\[0\].*at least 1 chars", id="an empty namespace"),
        pytest.param({"targetNamespaces": ["Prod"]}, "a namespace is named in lower case", id="a namespace like Prod"),
        pytest.param({"operatorNames": [""]}, r"operatorNames\[0\].*at least 1 chars", id="an empty operator name"),
        pytest.param({"operatorNames": ["a b"]}, "an operator name is made of", id="an operator name with a space"),
        pytest.param({"notify": ""}, "an endpoint is named", id="an empty endpoint"),
        pytest.param({"notify": "https://x"}, "an endpoint is named", id="a URL as endpoint"),
        pytest.param({"autoApprove": "yes"}, "must be of type boolean", id="a text as switch"),
        pytest.param({"policy": {"minimumAge": "a week"}}, "such as 7d, 24h, 1h30m or 1.5h", id="an age in words"),
        pytest.param({"policy": {"minimumAge": "1h30"}}, "such as 7d, 24h, 1h30m or 1.5h", id="an age without a unit"),
        pytest.param(with_window(schedule="0 22 * *  "), "five cron fields", id="a schedule of four fields"),
        pytest.param(with_window(schedule="60 22 * * *"), "five cron fields", id="minute 60"),
        pytest.param(with_window(schedule="0 24 * * *"), "five cron fields", id="hour 24"),
        pytest.param(with_window(schedule="0 0 32 * *"), "five cron fields", id="day 32"),
        pytest.param(with_window(schedule="0 0 * 13 *"), "five cron fields", id="month 13"),
        pytest.param(with_window(schedule="0 0 * * 8"), "five cron fields", id="weekday 8"),
        pytest.param(with_window(schedule="0 22 * * FRI\n"), "five cron fields", id="a schedule with a line break"),
        pytest.param(with_window(duration="0h"), "a window lasts longer than nothing", id="a window of no length"),
        pytest.param(with_window(timeZone="not a zone"), "a time zone is an IANA name", id="a time zone with spaces"),
        pytest.param(
            {"policy": {"windows": [{"schedule": "0 0 * * *"}]}}, "duration: Required", id="an endless window"
        ),
        pytest.param({"policy": {"withinRange": True}}, "withinRange needs versions", id="a range that is missing"),
        pytest.param(with_ranges("newest"), "semver comparisons", id="a range in words"),
        pytest.param(with_ranges(">=1.4.0 &&"), "semver comparisons", id="a range that does not end"),
        pytest.param(with_ranges(">=>1.4.0"), "semver comparisons", id="a range with two signs"),
        pytest.param(
            {"policy": {"versions": [{"operator": "a", "range": "1"}, {"operator": "a", "range": "2"}]}},
            "Duplicate value",
            id="two ranges for one operator",
        ),
        pytest.param(
            {"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}},
            "In and NotIn need values",
            id="In without values",
        ),
        pytest.param(
            {"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]}},
            "Exists and DoesNotExist take none",
            id="Exists with values",
        ),
        pytest.param(
            {"subscriptionSelector": {"matchExpressions": [{"key": "a", "operator": "Like"}]}},
            "Unsupported value",
            id="an unknown label operator",
        ),
    ],
)
async def test_a_spec_may_not_ask_for(spec: dict[str, Any], complaint: str, admin: Client) -> None:
    with pytest.raises(Invalid, match=complaint):
        await admin.create(an_approver(spec), dry_run=True)


async def test_defaults_are_those_of_the_code(admin: Client) -> None:
    stored = await admin.create(an_approver(with_window()), dry_run=True)

    assert stored["spec"]["autoApprove"] is True
    assert stored["spec"]["dryRun"] is False
    assert stored["spec"]["policy"]["allowDependencies"] is True
    assert stored["spec"]["policy"]["windows"][0]["timeZone"] == "UTC"
    seen = msgspec.convert(stored["spec"], InstallPlanApproverSpec)
    assert seen == msgspec.convert(with_window(), InstallPlanApproverSpec)


async def test_a_full_status_comes_back_as_it_was_written(admin: Client) -> None:
    pending = PendingPlan("prod/install-1", ("a.v2",), "PinNotOffered", "Move the pin.", since=NOON, until=NOON)
    status = InstallPlanApproverStatus(
        observed_generation=1,
        approved_count=2,
        last_approved_plan="prod/install-0",
        last_approved_time=NOON,
        pending_count=60,
        pending=(pending,) * PENDING_SHOWN,
        history=(ApprovalRecord("prod/install-0", ("a.v1",), NOON, "a.v1 is pinned"),) * HISTORY_KEPT,
        counted_plans=("5f0a1a36-9e0a-4f7e-9d3e-2f9c0b6a7c11",),
        conditions=(Condition("Ready", "True", "Watching", "All namespaces are watched.", NOON),),
    )
    approver = an_approver({}, name="with-status")
    await admin.create(approver)

    applied = await admin.apply(
        {key: value for key, value in approver.items() if key != "spec"} | {"status": msgspec.to_builtins(status)},
        manager="tests-status",
        subresource="status",
    )

    assert msgspec.convert(applied.object["status"], InstallPlanApproverStatus) == status


async def test_an_approver_of_the_existing_operator_is_read(admin: Client) -> None:
    stored = await admin.create(
        an_approver({"autoApprove": False, "targetNamespaces": ["a"], "operatorNames": ["prometheus"]}), dry_run=True
    )

    seen = msgspec.convert(stored["spec"], InstallPlanApproverSpec)
    assert (seen.auto_approve, seen.target_namespaces, seen.operator_names) == (False, ("a",), ("prometheus",))
