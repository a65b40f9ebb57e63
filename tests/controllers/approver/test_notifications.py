"""Notifications from the approver as a process, to a receiver on loopback."""

from pathlib import Path

from tests.controllers.approver.builders import V1, V2
from tests.controllers.approver.conftest import Start
from tests.controllers.approver.lifecycle import Lifecycle, an_approver, status_of
from tests.eventually import eventually
from tests.runtime.receiver import receiving
from virt_steward.apis.installplanapprover import INSTALL_PLAN_APPROVER, PENDING_SHOWN
from virt_steward.kube.client import Client
from virt_steward.objects.identity import Key, Ref


async def test_refusals_and_approvals_reach_the_endpoint_and_a_restart_repeats_none(
    cluster: Client, olm: Lifecycle, start: Start, tmp_path: Path
) -> None:
    await an_approver(cluster, olm.namespace, targetNamespaces=[olm.namespace], notify="audit")
    await olm.subscribe("db", V1)
    config = tmp_path / "notify.yaml"
    async with receiving() as receiver:
        config.write_text(f"audit: {{url: '{receiver.url}'}}")
        options = ("--no-leader-elect", f"--notify-config={config}")

        def told() -> list[tuple[str, str]]:
            return [(body["subject"], body["data"]["reason"]) for _, body in receiver.got]

        async def is_listed() -> bool:
            return bool((await status_of(cluster, olm.namespace)).get("pending"))

        with start(*options):
            plan = await olm.offer(V2)
            assert await eventually(lambda: told() == [(str(plan), "PinNotOffered")], within=20)
            assert await eventually(is_listed)
        with start(*options) as process:
            assert await eventually(lambda: process.said("skipping InstallPlan"), within=20)
            await olm.pin("db", V2)
            assert await eventually(lambda: len(told()) == 2, within=20)
    assert told()[1] == (str(plan), "Approved")


async def test_a_restart_repeats_no_refusal_though_more_wait_than_a_status_shows(
    cluster: Client, olm: Lifecycle, start: Start, tmp_path: Path
) -> None:
    await an_approver(cluster, olm.namespace, targetNamespaces=[olm.namespace], notify="audit")
    await olm.subscribe("db", V2)
    crowd = {str(await olm.offer(V1)) for _ in range(PENDING_SHOWN + 5)}
    config = tmp_path / "notify.yaml"
    async with receiving() as receiver:
        config.write_text(f"audit: {{url: '{receiver.url}', digestAfter: 0}}")
        options = ("--no-leader-elect", f"--notify-config={config}")

        def told() -> list[tuple[str, str]]:
            return [(body["subject"], body["data"]["reason"]) for _, body in receiver.got]

        async def are_counted() -> bool:
            return bool((await status_of(cluster, olm.namespace)).get("pendingCount") == len(crowd))

        with start(*options):
            assert await eventually(lambda: len(told()) >= len(crowd), within=20)
            assert await eventually(are_counted)
        with start(*options) as process:
            assert await eventually(
                lambda: all(process.said("skipping InstallPlan", plan=one) for one in crowd), within=20
            )
            newcomer = await olm.offer(V1)
            assert await eventually(lambda: str(newcomer) in dict(told()), within=20)
    assert dict(told()).keys() == {*crowd, str(newcomer)}
    assert len(told()) == len(set(told()))


async def test_a_plan_that_comes_while_nobody_runs_is_told_though_the_approver_is_labelled_after_that(
    cluster: Client, olm: Lifecycle, start: Start, tmp_path: Path
) -> None:
    await an_approver(cluster, olm.namespace, targetNamespaces=[olm.namespace], notify="audit")
    await olm.subscribe("db", V2)
    crowd = [await olm.offer(V1) for _ in range(PENDING_SHOWN + 5)]
    config = tmp_path / "notify.yaml"
    async with receiving() as receiver:
        config.write_text(f"audit: {{url: '{receiver.url}'}}")
        options = ("--no-leader-elect", f"--notify-config={config}")

        def told() -> set[str]:
            return {body["subject"] for _, body in receiver.got}

        async def are_counted() -> bool:
            return bool((await status_of(cluster, olm.namespace)).get("pendingCount") == len(crowd))

        with start(*options):
            assert await eventually(are_counted, within=20)
        newcomer = await olm.offer(V1)
        ann = Ref(INSTALL_PLAN_APPROVER, Key(olm.namespace, "ann"))
        await cluster.merge_patch(ann, {"metadata": {"labels": {"team": "db"}}})
        with start(*options):
            assert await eventually(lambda: str(newcomer) in told(), within=20)


async def test_a_kill_right_after_the_approval_loses_no_notice(
    cluster: Client, olm: Lifecycle, start: Start, tmp_path: Path
) -> None:
    await an_approver(cluster, olm.namespace, targetNamespaces=[olm.namespace], notify="audit")
    await olm.subscribe("db", V1)
    config = tmp_path / "notify.yaml"
    async with receiving() as receiver:
        config.write_text(f"audit: {{url: '{receiver.url}'}}")
        options = ("--no-leader-elect", f"--notify-config={config}")
        plan = await olm.offer(V1)
        with start(*options, fault="approver.approve.after:kill") as first:
            assert await eventually(lambda: first.was_killed, within=20)
        assert await olm.is_approved(plan)
        assert receiver.got == []
        with start(*options):
            assert await eventually(lambda: bool(receiver.got), within=20)
    assert [(body["subject"], body["data"]["reason"]) for _, body in receiver.got] == [(str(plan), "Approved")]
