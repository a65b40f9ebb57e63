"""Every decision is recorded with who, when and why: the same through a command and through the console."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest

from tests.cli.commands import steward
from tests.clients import a_client
from tests.console.objects import define_all, no_approved_plans, put
from tests.controllers.advisor.builders import PLAN
from tests.controllers.advisor.reviews import config_in_review, write_status
from tests.eventually import eventually
from tests.grants import an_account
from tests.machines import a_config, a_machine, the_config, the_machine
from tests.operators import a_pending_plan, create, the_plan
from virt_steward.apis.profiles import EXAMPLE
from virt_steward.apis.virtplatformconfig import VIRT_PLATFORM_CONFIG
from virt_steward.console import actions
from virt_steward.console.actions import SubmittedForm
from virt_steward.controllers.advisor.annotation_keys import DECISION as PLAN_DECISION
from virt_steward.controllers.autopilot.annotation_keys import DECISION as ASSET_DECISION
from virt_steward.controllers.autopilot.annotation_keys import (
    OVERRIDE_FREEZE,
    OVERRIDE_FREEZE_BY,
    OVERRIDE_FREEZE_COMMENT,
    PAUSED,
    SCOPE,
)
from virt_steward.controllers.autopilot.options import HCO, AutopilotOptions
from virt_steward.controllers.autopilot.rollouts.staged import Occasion, StagedChange, ref_of_staging, staging_intent
from virt_steward.controllers.placement.observation import DECISION as MACHINE_DECISION
from virt_steward.controllers.placement.observation import MACHINE
from virt_steward.decisions.installplans import InstallPlanApproved, ReviewedPlan, approve_manually
from virt_steward.decisions.outcomes import Decided
from virt_steward.insight.status import SECTIONS, read_section
from virt_steward.kube.client import Client, Object
from virt_steward.kube.errors import Forbidden, NotFound
from virt_steward.objects.decision_record import DecisionKeys, DecisionRecord, read_decision
from virt_steward.objects.identity import Key, Ref, Regarding, ref_of
from virt_steward.packaging.parts import POLICIES
from virt_steward.platform.hco import HYPERCONVERGED
from virt_steward.platform.machineconfigs import MACHINE_CONFIG
from virt_steward.runtime.access import Access, Grant, Installation
from virt_steward_demo.local.controlplane import ControlPlane

NOW = datetime(2026, 6, 1, tzinfo=UTC)
ASSET = "swap-enable"
STAGED = StagedChange(NOW, "1", ("worker",), asset=ASSET, occasion=Occasion.UPDATE)
MACHINE_CONFIG_OF_ASSET: Object = {
    "apiVersion": "machineconfiguration.openshift.io/v1",
    "kind": "MachineConfig",
    "metadata": {"name": "90-worker-swap-online", "annotations": {PAUSED: "true"}},
    "spec": {},
}
THE_HCO: Object = {
    "apiVersion": "hco.kubevirt.io/v1",
    "kind": "HyperConverged",
    "metadata": {"name": HCO.name, "namespace": HCO.namespace},
    "spec": {},
}
REFS = {ASSET: ref_of(MACHINE_CONFIG_OF_ASSET), "hco-golden-config": ref_of(THE_HCO)}


@dataclass(frozen=True, slots=True)
class Verb:
    """One decision, as a command and as a form of the console."""

    command: tuple[str, ...]
    action: Callable[[SubmittedForm], Awaitable[Any]]
    ref: Ref
    keys: DecisionKeys
    fields: dict[str, str] = field(default_factory=dict)
    match: dict[str, str] = field(default_factory=dict)


def verbs(namespace: str) -> dict[str, Verb]:
    profile = partial(
        Verb, ref=Ref(VIRT_PLATFORM_CONFIG, Key("", EXAMPLE)), keys=PLAN_DECISION, match={"name": EXAMPLE}
    )
    asset = partial(Verb, keys=ASSET_DECISION, match={"name": ASSET})
    east = f"east-{namespace}"
    return {
        "approve": profile(("approve", EXAMPLE, "--plan", PLAN[:12]), actions.approve_plan, fields={"plan": PLAN}),
        "reject": profile(("reject", EXAMPLE, "--plan", PLAN), actions.reject_plan, fields={"plan": PLAN}),
        "rollback": profile(("rollback", EXAMPLE), actions.roll_back),
        "replan": profile(("replan", EXAMPLE), actions.replan),
        "resume": asset(("resume", ASSET), actions.resume_asset, ref=REFS[ASSET]),
        "choose": Verb(
            ("choose", f"{namespace}/web", east),
            actions.choose_cluster,
            the_machine(namespace, "web"),
            MACHINE_DECISION,
            {"cluster": east},
            {"namespace": namespace, "name": "web"},
        ),
    }


@pytest.fixture
async def objects(configs: Client, namespace: str) -> AsyncIterator[Client]:
    """One of each kind that is decided about."""
    await define_all(configs)
    await put(configs, a_config(f"east-{namespace}", Key(namespace, "none")))
    yield configs
    for ref in (REFS[ASSET], the_config(f"east-{namespace}"), ref_of(THE_HCO), ref_of_staging(HCO.namespace)):
        with suppress(NotFound):
            await configs.delete(ref)


async def undecided(client: Client, namespace: str) -> None:
    """Nobody has decided anything, and everything waits."""
    for ref in (Ref(VIRT_PLATFORM_CONFIG, Key("", EXAMPLE)), REFS[ASSET], the_machine(namespace, "web")):
        with suppress(NotFound):
            await client.delete(ref)
    rig = await config_in_review(client)
    await write_status(rig, phase="ReviewRequired", pre_image="a-record")  # of a plan before
    await client.create(MACHINE_CONFIG_OF_ASSET)
    await client.create(a_machine(namespace, "web"))


async def record_of(client: Client, verb: Verb) -> DecisionRecord:
    found = read_decision((await client.get(verb.ref))["metadata"]["annotations"], verb.keys)
    assert found
    return found


@pytest.mark.parametrize("name", ["approve", "reject", "rollback", "replan", "resume", "choose"])
async def test_command_and_console_leave_the_same_record(
    name: str, objects: Client, namespace: str, control_plane: ControlPlane
) -> None:
    verb = verbs(namespace)[name]
    await undecided(objects, namespace)
    ended = await steward(*verb.command, "--comment", "CHG-7", kubeconfig=control_plane.kubeconfig)
    assert ended.code == 0, ended.stderr
    by_command = await record_of(objects, verb)
    await undecided(objects, namespace)
    form = SubmittedForm(objects, {"comment": "CHG-7", **verb.fields}, verb.match, by_command.at, REFS)
    assert isinstance(await verb.action(form), Decided)
    assert await record_of(objects, verb) == by_command
    assert (by_command.verb, by_command.by, by_command.comment) == (name, "admin", "CHG-7")
    assert abs((datetime.now(UTC) - by_command.at).total_seconds()) < 60


async def test_release_is_recorded_with_what_was_released(objects: Client) -> None:
    made = (await objects.apply(THE_HCO, manager="tests", force=True)).object
    hco = Regarding(ref_of(THE_HCO), "hco.kubevirt.io/v1", made["metadata"]["uid"])
    await put(objects, staging_intent(hco, {"90-worker-swap-online": STAGED}))
    fields = {"comment": "CHG-7", "staged": STAGED.id}
    assert isinstance(await actions.release_asset(SubmittedForm(objects, fields, {"name": ASSET}, NOW, REFS)), Decided)
    annotations = (await objects.get(hco.ref))["metadata"]["annotations"]
    assert read_decision(annotations, ASSET_DECISION) == DecisionRecord("release", STAGED.id, "admin", NOW, "CHG-7")


async def test_status_lists_decisions_of_all_controllers(objects: Client, namespace: str) -> None:
    await undecided(objects, namespace)
    await no_approved_plans(objects)  # some tests approve in the future
    await put(objects, {**THE_HCO, "metadata": {**THE_HCO["metadata"], "annotations": {SCOPE: ASSET}}})
    await create(objects, a_pending_plan(namespace))
    now = datetime.now(UTC).replace(microsecond=0)
    for name in ("rollback", "resume", "choose"):
        verb = verbs(namespace)[name]
        form = SubmittedForm(objects, {"comment": "CHG-7", **verb.fields}, verb.match, now, REFS)
        assert isinstance(await verb.action(form), Decided)
    plan = the_plan(namespace)
    assert isinstance(
        await approve_manually(objects, plan.key, ReviewedPlan(None, None), "CHG-7", now), InstallPlanApproved
    )
    sections = [await read_section(objects, name, AutopilotOptions(), now) for name in SECTIONS]
    expected = [
        (EXAMPLE, "rollback", ""),
        (str(REFS[ASSET]), "resume", ""),
        (f"InstallPlan {plan.key}", "approve", ""),
        (f"Machine {namespace}/web", "choose", f"east-{namespace}"),
    ]
    for section, record in zip(sections, expected, strict=True):
        found = [(one.object, one.verb, one.subject) for one in section.decisions if one.comment == "CHG-7"]
        assert record in found  # another test may have decided in the same second
    await objects.delete(plan)


@pytest.mark.parametrize(
    ("name", "fields"), [("rollback", {"plan": "0" * 64}), ("replan", {"plan": ""}), ("resume", {"uid": "another"})]
)
async def test_decision_on_what_was_not_shown_is_refused(
    name: str, fields: dict[str, str], objects: Client, namespace: str
) -> None:
    verb = verbs(namespace)[name]
    await undecided(objects, namespace)
    before = await objects.get(verb.ref)
    outcome = await verb.action(SubmittedForm(objects, fields, verb.match, NOW, REFS))
    assert "since you reviewed it" in outcome.reason
    assert await objects.get(verb.ref) == before


WRITER = Access(
    "writer",
    tuple(
        Grant(kind, ("get", "patch"), "to decide")
        for kind in (VIRT_PLATFORM_CONFIG, MACHINE, MACHINE_CONFIG, HYPERCONVERGED)
    ),
)


async def test_server_refuses_decisions_in_the_name_of_others(
    objects: Client, namespace: str, control_plane: ControlPlane
) -> None:
    await undecided(objects, namespace)
    for policy in POLICIES:
        await put(objects, policy)
    targets = {
        Ref(VIRT_PLATFORM_CONFIG, Key("", EXAMPLE)): PLAN_DECISION,
        REFS[ASSET]: ASSET_DECISION,
        the_machine(namespace, "web"): MACHINE_DECISION,
    }
    account = await an_account(objects, WRITER, Installation(namespace))
    try:
        async with a_client(control_plane, account.token) as client:
            for ref, keys in targets.items():
                assert await eventually(partial(is_refused, client, ref, {keys.by: "admin"}), within=60)
                signed = {keys.decision: "replan", keys.by: account.user, keys.at: "2026-06-01T00:00:00Z"}
                assert not await is_refused(client, ref, signed)
                record = {keys.decision: "replan", keys.by: "admin", keys.at: "2026-06-01T00:00:00Z"}
                await objects.merge_patch(ref, {"metadata": {"annotations": record}})
                forged: list[dict[str, str | None]] = [
                    {keys.decision: "reject plan 1"},
                    {keys.at: "2030-01-01T00:00:00Z"},
                    {keys.comment: "never said"},
                    {keys.by: None},
                ]
                for annotations in forged:
                    assert await is_refused(client, ref, annotations), (ref, annotations)
                assert not await is_refused(client, ref, {"colour": "red"})
                assert not await is_refused(client, ref, dict.fromkeys(keys))
            await refuses_to_override_a_freeze(client, account.user, objects)
    finally:
        for policy in POLICIES:
            await objects.delete(ref_of(policy))
        for ref, keys in targets.items():
            assert await eventually(partial(is_accepted, objects, ref, {keys.by: "nobody"}), within=60)


async def refuses_to_override_a_freeze(client: Client, user: str, admin: Client) -> None:
    """The server does, without the verb; one who has it overrides in their own name."""
    await put(admin, THE_HCO)
    hco = ref_of(THE_HCO)
    override = {OVERRIDE_FREEZE: "id", OVERRIDE_FREEZE_BY: user, OVERRIDE_FREEZE_COMMENT: "incident 7"}
    with pytest.raises(Forbidden, match="you need the verb override-freeze on hyperconvergeds"):
        await client.merge_patch(hco, {"metadata": {"annotations": override}}, dry_run=True)
    with pytest.raises(Forbidden, match="must be your own name: admin"):
        await admin.merge_patch(hco, {"metadata": {"annotations": override}}, dry_run=True)
    named = override | {OVERRIDE_FREEZE_BY: "admin"}
    await admin.merge_patch(hco, {"metadata": {"annotations": named}}, dry_run=True)


async def is_accepted(client: Client, ref: Ref, annotations: dict[str, str | None]) -> bool:
    return not await is_refused(client, ref, annotations)


async def is_refused(client: Client, ref: Ref, annotations: dict[str, str | None]) -> bool:
    """Whether this user may not annotate the object so; nothing is written."""
    try:
        await client.merge_patch(ref, {"metadata": {"annotations": annotations}}, dry_run=True)
    except Forbidden as refusal:
        return "may only name yourself" in str(refusal)
    return False
