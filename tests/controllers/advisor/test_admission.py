"""The admission policy: an approval names who really gives it."""

import re
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.clients import a_client
from tests.controllers.advisor.rig import the_config
from tests.eventually import eventually
from tests.grants import Account, an_account, grant_verbs
from tests.howtos import FOLDER
from virt_steward.apis.profiles import EXAMPLE, LOAD_AWARE
from virt_steward.apis.virtplatformconfig import API_VERSION, VIRT_PLATFORM_CONFIG
from virt_steward.controllers.advisor.admission import POLICIES
from virt_steward.controllers.advisor.annotation_keys import (
    APPROVAL_COMMENT,
    APPROVALS,
    APPROVED_BY,
    APPROVED_PLAN,
    DECISION,
    OVERRIDE_FREEZE,
    OVERRIDE_FREEZE_BY,
    OVERRIDE_FREEZE_COMMENT,
    REJECTED_BY,
    REJECTED_GENERATION,
    REJECTED_PLAN,
    REJECTION_COMMENT,
    REQUESTED_BY,
    UNAPPROVED,
)
from virt_steward.kube.client import Client
from virt_steward.kube.errors import AlreadyExists, Forbidden, Invalid
from virt_steward.objects.identity import ref_of
from virt_steward.runtime.access import Access, Grant, Installation
from virt_steward_demo.local.controlplane import ControlPlane

EDITOR = Access("editor", (Grant(VIRT_PLATFORM_CONFIG, ("get", "create", "patch"), "to approve plans"),))
NEW, OLD = "b" * 64, "a" * 64


def a_config(**notes: str) -> dict[str, Any]:
    return {
        "apiVersion": API_VERSION,
        "kind": VIRT_PLATFORM_CONFIG.name,
        "metadata": {"name": EXAMPLE, "annotations": notes},
        "spec": {"profile": EXAMPLE},
    }


@pytest.fixture
async def guarded(configs: Client) -> AsyncIterator[Client]:
    """An admin of a server that enforces the policy."""
    for policy in POLICIES:
        await configs.create(policy)
    assert await eventually(lambda: _is_refused(configs), within=60)
    yield configs
    for policy in POLICIES:
        await configs.delete(ref_of(policy))
    assert await eventually(lambda: _is_accepted(configs), within=60)  # it is in force for a while


async def _is_refused(client: Client) -> bool:
    """A policy is in force a moment after it is written."""
    try:
        await client.create(a_config(**{APPROVED_BY: "nobody"}), dry_run=True)
    except Forbidden as refusal:
        return f"{APPROVED_BY} may only name yourself: admin" in str(refusal)
    return False


async def _is_accepted(client: Client) -> bool:
    try:
        return not await _is_refused(client)
    except AlreadyExists:  # which the server says only after its policies
        return True


@pytest.fixture
async def editor(guarded: Client, namespace: str, control_plane: ControlPlane) -> Account:
    """Somebody who may approve plans."""
    account = await an_account(guarded, EDITOR, Installation(namespace))
    await grant_verbs(guarded, account.user, VIRT_PLATFORM_CONFIG, "approve")
    async with a_client(control_plane, account.token) as client:
        assert await eventually(lambda: _may_approve(client))
    return account


async def test_policy_refuses_name_of_another_user(
    guarded: Client, editor: Account, control_plane: ControlPlane
) -> None:
    await guarded.create(a_config())
    async with a_client(control_plane, editor.token) as client:
        with pytest.raises(Forbidden):
            await annotated(client, **{APPROVED_BY: "admin", APPROVED_PLAN: NEW})
        await annotated(client, **{APPROVED_BY: editor.user, APPROVED_PLAN: NEW})
    assert (await notes(guarded))[APPROVED_BY] == editor.user


async def test_policy_lets_approval_of_another_user_stay_or_go_but_not_move(
    guarded: Client, editor: Account, control_plane: ControlPlane
) -> None:
    await guarded.create(a_config(**{APPROVED_BY: "admin", APPROVED_PLAN: OLD, APPROVAL_COMMENT: "agreed"}))
    async with a_client(control_plane, editor.token) as client:
        await client.merge_patch(the_config(EXAMPLE), {"spec": {"failurePolicy": "Continue"}})
        await annotated(client, colour="red")
        with pytest.raises(Forbidden):
            await annotated(client, **{APPROVED_PLAN: NEW})
        with pytest.raises(Forbidden):
            await annotated(client, **{APPROVAL_COMMENT: "never agreed"})
        await annotated(client, **{APPROVED_PLAN: None})
        with pytest.raises(Forbidden):  # the name that is left is no signature to be used again
            await annotated(client, **{APPROVED_PLAN: NEW})
        await annotated(client, **{APPROVED_BY: None, APPROVAL_COMMENT: None})
    assert await notes(guarded) == {"colour": "red"}


async def test_policy_refuses_rejection_in_another_name(
    guarded: Client, editor: Account, control_plane: ControlPlane
) -> None:
    await guarded.create(a_config(**{REJECTED_BY: "admin", REJECTED_PLAN: OLD, REJECTION_COMMENT: "too early"}))
    async with a_client(control_plane, editor.token) as client:
        with pytest.raises(Forbidden, match=f"{REJECTED_BY} may only name yourself: {editor.user}"):
            await annotated(client, **{REJECTED_PLAN: NEW})
        with pytest.raises(Forbidden):
            await annotated(client, **{REJECTION_COMMENT: "never"})
        with pytest.raises(Forbidden):  # it would count for a plan that was asked for since
            await annotated(client, **{REJECTED_GENERATION: "7"})
        await annotated(
            client, **{APPROVED_BY: editor.user, APPROVED_PLAN: NEW}
        )  # the other signature is another matter
        await annotated(client, **{REJECTED_BY: editor.user, REJECTED_PLAN: NEW})
    assert (await notes(guarded))[REJECTED_BY] == editor.user


async def test_backup_can_be_restored_without_the_annotations_that_the_howto_removes(
    editor: Account, control_plane: ControlPlane
) -> None:
    page = (FOLDER / "back-up-and-restore.md").read_text()
    removed = set(re.findall(r"(advisor\.kubevirt\.io/[a-z-]+)-(?= )", page))
    approved = {APPROVED_BY: "alice", APPROVED_PLAN: OLD, APPROVAL_COMMENT: "agreed", REQUESTED_BY: "alice"}
    rejected = {REJECTED_BY: "alice", REJECTED_PLAN: OLD, REJECTION_COMMENT: "no", REJECTED_GENERATION: "7"}
    overridden = {OVERRIDE_FREEZE: OLD, OVERRIDE_FREEZE_BY: "alice", OVERRIDE_FREEZE_COMMENT: "incident 7"}
    decided = dict(zip(DECISION, ("approve x", "alice", "2026-01-01T00:00:00Z", "agreed"), strict=True))
    backup = {**approved, **rejected, **overridden, **decided, APPROVALS: f"{OLD} 2026-01-01T00:00:00Z - alice"}
    async with a_client(control_plane, editor.token) as client:
        for records in (approved, rejected, overridden, decided, {APPROVALS: backup[APPROVALS]}):
            with pytest.raises(Forbidden):
                await client.create(a_config(**records), dry_run=True)
        restored = {key: value for key, value in backup.items() if key not in removed}
        await client.create(a_config(**restored, colour="red"), dry_run=True)
    assert not restored


async def test_policy_lets_only_those_with_the_right_override_a_freeze(
    guarded: Client, editor: Account, control_plane: ControlPlane
) -> None:
    await guarded.create(a_config())
    override = {OVERRIDE_FREEZE: NEW, OVERRIDE_FREEZE_BY: editor.user, OVERRIDE_FREEZE_COMMENT: "incident 7"}
    async with a_client(control_plane, editor.token) as client:
        with pytest.raises(Forbidden, match="you need the verb override-freeze on virtplatformconfigs"):
            await annotated(client, **override)
        await grant_verbs(guarded, editor.user, VIRT_PLATFORM_CONFIG, "override-freeze")
        assert await eventually(lambda: _may_annotate(client, override))
        with pytest.raises(Forbidden, match=f"{OVERRIDE_FREEZE_BY} must be your own name: {editor.user}"):
            await annotated(client, **override | {OVERRIDE_FREEZE_BY: "admin"})
        with pytest.raises(Invalid, match=f"{OVERRIDE_FREEZE_COMMENT} must say why"):
            await annotated(client, **override | {OVERRIDE_FREEZE_COMMENT: " "})
        await annotated(client, **override)
        await guarded.merge_patch(the_config(EXAMPLE), {"spec": {"failurePolicy": "Continue"}})
        with pytest.raises(Forbidden):  # an admin may override too, but not in the name of the editor
            await annotated(guarded, **{OVERRIDE_FREEZE: OLD})
        await annotated(client, **UNAPPROVED)
    assert await notes(guarded) == {}


async def _may_approve(client: Client) -> bool:
    """A role counts a moment after it is written."""
    config = a_config()
    config["spec"]["action"] = "Apply"
    try:
        await client.create(config, dry_run=True)
    except Forbidden:
        return False
    return True


async def _may_annotate(client: Client, override: dict[str, str]) -> bool:
    """A role counts a moment after it is written."""
    try:
        await client.merge_patch(the_config(EXAMPLE), {"metadata": {"annotations": override}}, dry_run=True)
    except Forbidden:
        return False
    return True


async def test_policy_ignores_configs_without_annotations(
    guarded: Client, editor: Account, control_plane: ControlPlane
) -> None:
    bare = a_config()
    del bare["metadata"]["annotations"]
    async with a_client(control_plane, editor.token) as client:
        await client.create(bare)
        await client.merge_patch(the_config(EXAMPLE), {"spec": {"action": "Apply"}})
        await annotated(client, **{APPROVED_PLAN: NEW})  # nobody's name, nobody's lie
    assert await notes(guarded) == {APPROVED_PLAN: NEW}


async def test_policy_holds_approvals_to_those_who_give_them(
    guarded: Client, editor: Account, control_plane: ControlPlane
) -> None:
    await guarded.create(a_config(**{APPROVALS: f"{NEW} - - admin"}))
    async with a_client(control_plane, editor.token) as client:
        forged = [
            f"{NEW} - - admin\n{NEW} - - bob",
            f"{NEW} - - admin\n{OLD} - - admin",  # of a plan that admin has not seen
            f"{NEW} - changed admin",
            f"{NEW} - - admin\n{NEW} - - eve {editor.user}",  # the name of another, who is eve and something
            f"{NEW} - - admin\n{NEW} - {editor.user}",
            f"{NEW} - - admin\n{NEW} - - {editor.user} ",
            "\n".join([f"{NEW} - {number} {editor.user}" for number in range(33)]),
            f"{NEW} - {'x' * 65536} {editor.user}",
        ]
        for text in forged:
            with pytest.raises(Forbidden, match=f"{APPROVALS} may only get approvals by yourself: {editor.user}"):
                await annotated(client, **{APPROVALS: text})
        both = f"{NEW} - - admin\n{NEW} - fine {editor.user}"
        await annotated(client, **{APPROVALS: both})
        await annotated(client, **{APPROVALS: both.replace("fine", "very%20fine")})
        await annotated(client, **{APPROVALS: f"{NEW} - - {editor.user}"})  # removing an approval starts nothing
        with pytest.raises(Forbidden):
            await annotated(client, **{APPROVALS: both})
    assert (await notes(guarded))[APPROVALS] == f"{NEW} - - {editor.user}"


async def test_policy_judges_longest_approvals(guarded: Client, editor: Account, control_plane: ControlPlane) -> None:
    full = "\n".join(f"{NEW} - {number:x>1900} admin" for number in range(32))
    await guarded.create(a_config(**{APPROVALS: full}))
    async with a_client(control_plane, editor.token) as client:
        await annotated(client, **{APPROVALS: f"{full.rpartition(chr(10))[0]}\n{NEW} - - {editor.user}"})


async def test_policy_knows_who_asks_for_plan(guarded: Client, editor: Account, control_plane: ControlPlane) -> None:
    config = a_config()
    config["spec"]["approvals"] = {"required": 1, "excludeRequester": True}
    with pytest.raises(Forbidden, match=f"set the annotation {REQUESTED_BY} to admin"):
        await guarded.create(config)
    config["metadata"]["annotations"] = {REQUESTED_BY: "admin"}
    await guarded.create(config)
    async with a_client(control_plane, editor.token) as client:
        with pytest.raises(Forbidden, match="the requester of a plan must be known"):
            await asked(client, {"action": "Apply"})
        with pytest.raises(Forbidden, match="may only name yourself"):
            await asked(client, {"action": "Apply"}, by="bob")
        await asked(client, {"action": "Ignore"})
        await asked(client, {"action": "DryRun"}, by=editor.user)
        await guarded.merge_patch(
            the_config(EXAMPLE), {"status": {"phase": "ReviewRequired", "planHash": NEW}}, subresource="status"
        )
    approval = {APPROVALS: f"{NEW} - - admin"}
    with pytest.raises(Forbidden):  # of another plan than the one in review
        await guarded.merge_patch(
            the_config(EXAMPLE),
            {"metadata": {"annotations": {APPROVALS: f"{OLD} - - admin"}}, "spec": {"action": "Apply"}},
        )
    await guarded.merge_patch(the_config(EXAMPLE), {"metadata": {"annotations": approval}, "spec": {"action": "Apply"}})
    assert await notes(guarded) == {REQUESTED_BY: editor.user, **approval}


async def test_policy_takes_other_options_for_request(
    guarded: Client, editor: Account, control_plane: ControlPlane
) -> None:
    spec = {"profile": LOAD_AWARE, "approvals": {"required": 1, "excludeRequester": True}}
    metadata = {"name": LOAD_AWARE, "annotations": {REQUESTED_BY: "admin"}}
    await guarded.create(a_config() | {"metadata": metadata, "spec": spec})
    other = {"spec": {"options": {"loadAware": {"deschedulingIntervalSeconds": 120}}}}
    async with a_client(control_plane, editor.token) as client:
        with pytest.raises(Forbidden, match="the requester of a plan must be known"):
            await client.merge_patch(the_config(LOAD_AWARE), other)
        await client.merge_patch(
            the_config(LOAD_AWARE), {**other, "metadata": {"annotations": {REQUESTED_BY: editor.user}}}
        )


async def test_policy_lets_only_entitled_users_relax_approvals(
    guarded: Client, editor: Account, control_plane: ControlPlane
) -> None:
    async with a_client(control_plane, editor.token) as client:
        await client.create(a_config())
        await approvals_required(client, {"required": 2})
        await approvals_required(client, {"required": 3, "excludeRequester": True}, by=editor.user)
        for less in ({"required": 2}, {"excludeRequester": False}, None):
            with pytest.raises(Forbidden, match="only with the right to relax-approvals"):
                await approvals_required(client, less, by=editor.user)
    await approvals_required(guarded, None)


async def approvals_required(client: Client, approvals: dict[str, Any] | None, by: str = "") -> None:
    await asked(client, {"approvals": approvals}, by)


async def asked(client: Client, spec: dict[str, Any], by: str = "") -> None:
    notes = {"metadata": {"annotations": {REQUESTED_BY: by}}} if by else {}
    await client.merge_patch(the_config(EXAMPLE), {"spec": spec, **notes})


async def annotated(client: Client, **changes: str | None) -> None:
    await client.merge_patch(the_config(EXAMPLE), {"metadata": {"annotations": changes}})


async def notes(client: Client) -> dict[str, str]:
    found: dict[str, str] = (await client.get(the_config(EXAMPLE)))["metadata"].get("annotations", {})
    return found
