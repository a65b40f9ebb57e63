"""What a viewer can do: each a write with their own credentials, of just what they were shown, or none at all."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from virt_steward.apis.kubevirtconfig import KUBEVIRT_CONFIG
from virt_steward.apis.virtplatformconfig import API_VERSION, VIRT_PLATFORM_CONFIG
from virt_steward.console import forms
from virt_steward.controllers.advisor import manual_approval
from virt_steward.controllers.advisor.annotation_keys import (
    APPROVED_PLAN,
    REJECTED_BY,
    REJECTED_GENERATION,
    REJECTED_PLAN,
    REJECTION_COMMENT,
    UNAPPROVED,
)
from virt_steward.controllers.advisor.observation import VirtPlatformConfig
from virt_steward.controllers.approver.manual_approval import InstallPlanNotApproved, approve_manually
from virt_steward.controllers.autopilot.annotation_keys import PAUSED
from virt_steward.controllers.placement.observation import CONFIG_ANNOTATION, MACHINE, Machine
from virt_steward.kube.client import EVERYTHING
from virt_steward.kube.errors import AlreadyExists, Conflict, KubeError, NotFound
from virt_steward.objects.identity import Key, Ref
from virt_steward.objects.meta import Existing
from virt_steward.ssa.managers import CONSOLE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from datetime import datetime

    from virt_steward.apis.virtplatformconfig import Action
    from virt_steward.console.authentication import Viewer
    from virt_steward.kube.client import Client

T = TypeVar("T")

LONGEST_COMMENT = 1024
LOOKS = 30
"""At whether the advisor has seen what was written."""
PAUSE = 0.1
"""Seconds between two of them."""


@dataclass(frozen=True, slots=True)
class ActionDone:
    says: str


@dataclass(frozen=True, slots=True)
class ActionRefused:
    """Nothing was written."""

    title: str
    why: str


@dataclass(frozen=True, slots=True)
class ActionPartlyDone:
    """Something was written, or may have been, but not all that was asked for."""

    title: str
    why: str


Outcome = ActionDone | ActionRefused | ActionPartlyDone


@dataclass(frozen=True, slots=True)
class SubmittedForm:
    """What was filled in, and by whom."""

    viewer: Viewer
    fields: Mapping[str, str]
    now: datetime

    @property
    def client(self) -> Client:
        return self.viewer.client

    @property
    def comment(self) -> str:
        return self.fields.get("comment", "").strip()[:LONGEST_COMMENT]


async def approve_plan(form: SubmittedForm, name: str) -> Outcome:
    """Bound to the plan that was shown: another one is not approved, and neither is one that changes meanwhile."""
    match await manual_approval.approve_plan(form.client, name, form.fields.get("plan", ""), form.comment):
        case manual_approval.PlanNotApproved(_, why):
            return ActionRefused("Not approved", f"Nothing was done: {why}.")
        case _:
            return ActionDone(f"You approved this plan of {name}. It begins now, or as soon as its window opens.")


async def reject_plan(form: SubmittedForm, name: str) -> Outcome:
    """What was applied before stays as it is, the profile stays on if it was, and everybody can read why."""
    return await _insistently(partial(_rejected, form, name))


async def _rejected(form: SubmittedForm, name: str) -> Outcome:
    config = await _config(form, name)
    shown = form.fields.get("plan", "")
    if config.status.plan_hash != shown or config.status.phase != "ReviewRequired" or config.is_touched:
        return ActionRefused("Not rejected", "Nothing was done: the plan is not the one that you looked at.")
    if config.spec.action == "Apply" and config.approved_plan == shown:
        return ActionRefused("Not rejected", "Nothing was done: somebody has approved this plan by now, and it begins.")
    action = action_after_rejection(config)
    notes = {
        REJECTED_PLAN: shown,
        REJECTED_GENERATION: str(config.status.plan_generation),
        REJECTED_BY: form.viewer.user,
        REJECTION_COMMENT: form.comment or None,
    }
    if action != "Apply":  # there, an approval of an earlier plan is what holds this one back
        notes |= UNAPPROVED
    await _patch(form, config, notes, {"action": action})
    return ActionDone(_said_of_rejection(config, action))


def action_after_rejection(config: VirtPlatformConfig) -> Action:
    """Without its plan, a profile that was never active is off, and a way back is not gone. Any other stays on.

    DryRun watches over what was applied as Apply does, and by itself writes nothing.
    """
    if config.spec.action == "Rollback":
        return "DryRun"
    was_active = config.status.governed or config.status.applied_inputs
    return config.spec.action if config.spec.action == "Apply" or was_active else "Ignore"


def _said_of_rejection(config: VirtPlatformConfig, action: Action) -> str:
    name = config.metadata.name
    if config.spec.action == "Rollback":
        return f"You rejected the way back from {name}. {_kept(name)}"
    if action == "Ignore":
        return f"You rejected this plan of {name}. Nothing was changed, and the profile is off."
    return f"You rejected this plan of {name}. It stays unapproved, so nothing of it is done. The profile stays on."


def _kept(name: str) -> str:
    return (
        f"What is applied stays, and {name} is looked after again, with action DryRun."
        " Whatever is not as it should be by now shows as a plan for review."
    )


async def hand_over(form: SubmittedForm, name: str) -> Outcome:
    """What was applied stays as it is, and is nobody's but yours."""
    await _patch(form, await _config(form, name), {}, {"action": "Ignore"})
    return ActionDone(f"{name} is off. What it had applied stays, and is yours to change.")


async def undo(form: SubmittedForm, name: str) -> Outcome:
    await _patch(form, await _config(form, name), {APPROVED_PLAN: None}, {"action": "Rollback"})
    return ActionDone(f"The way back from {name} is being planned. Nothing is undone before you approve that plan.")


def is_undoing(config: VirtPlatformConfig) -> bool:
    """Whether a way back was asked for, and is not at its end."""
    is_back = config.status.plan_action == "Rollback" and config.status.phase == "Completed"
    return config.spec.action == "Rollback" and not is_back


async def cancel_undo(form: SubmittedForm, name: str) -> Outcome:
    """What was taken back already is not applied again before somebody approves that."""

    async def cancelled() -> Outcome:
        config = await _config(form, name)
        if not is_undoing(config):
            return ActionRefused("Not cancelled", f"Nothing was done: {name} is not being undone.")
        await _patch(form, config, UNAPPROVED, {"action": "DryRun"})
        return ActionDone(f"The undo of {name} is cancelled. {_kept(name)}")

    return await _insistently(cancelled)


async def plan_anew(form: SubmittedForm, name: str) -> Outcome:
    """In the same direction. Only a change of the spec asks for a plan, so the same action is set by way of Ignore."""
    before = await _insistently(partial(_turned, form, name))
    action = _direction(before)
    if before.spec.action != action:
        return ActionDone(_said_of_new_plan(name, action))
    try:
        if action == "Rollback":
            await _until_seen(form, name)
        return await _insistently(partial(_turned_on, form, name, action))
    except KubeError as error:
        why = f"{name} was switched off on the way to a new plan, and to set it to {action} again has failed: {error}"
        return ActionPartlyDone(
            "Only half done", f"{why}. What is applied stays. If the profile is off, ask for the plan again."
        )


def _direction(config: VirtPlatformConfig) -> Action:
    return "Rollback" if config.spec.action == "Rollback" else "DryRun"


def _said_of_new_plan(name: str, action: Action) -> str:
    if action == "Rollback":
        return f"The way back from {name} is being planned anew. Nothing is undone before you approve that plan."
    return f"A new plan for {name} is being drafted."


async def _turned(form: SubmittedForm, name: str) -> VirtPlatformConfig:
    """Set the action that asks for a plan, or Ignore if it is set already. Gives the config as it was before."""
    config = await _config(form, name)
    action = _direction(config)
    await _patch(form, config, UNAPPROVED, {"action": "Ignore" if config.spec.action == action else action})
    return config


async def _turned_on(form: SubmittedForm, name: str, action: Action) -> Outcome:
    config = await _config(form, name)
    if config.spec.action != "Ignore":
        return ActionDone(f"Somebody has set {name} to {config.spec.action} at the same moment, and that counts.")
    await _patch(form, config, {}, {"action": action})
    return ActionDone(_said_of_new_plan(name, action))


async def _until_seen(form: SubmittedForm, name: str) -> None:
    """The advisor plans a way back anew only if it has seen the profile off. One that does not look is not awaited."""
    for _ in range(LOOKS):
        if not (await _config(form, name)).is_touched:
            return
        await asyncio.sleep(PAUSE)


async def activate(form: SubmittedForm, name: str) -> Outcome:
    """Ask for a plan, with the options of the form; nothing is applied."""
    return await _insistently(partial(_activated, form, name))


async def _activated(form: SubmittedForm, name: str) -> Outcome:
    config = await _config_or_none(form, name) or await _created(form, name)
    if config and not await _patch(form, config, UNAPPROVED, _wish(form, name, config)):
        return await plan_anew(form, name)
    return ActionDone(f"A plan for {name} is being drafted. Nothing is applied before somebody approves it.")


def _wish(form: SubmittedForm, name: str, config: VirtPlatformConfig | None) -> dict[str, Any]:
    before = msgspec.to_builtins(config.options) if config else {}
    options = forms.read(name, form.fields, before)
    return {"action": "DryRun"} | ({} if options is None else {"options": options})


async def _config_or_none(form: SubmittedForm, name: str) -> VirtPlatformConfig | None:
    try:
        return await _config(form, name)
    except NotFound:
        return None


async def _created(form: SubmittedForm, name: str) -> VirtPlatformConfig | None:
    """Make the config. If somebody was faster, as the advisor that offers it may be, give theirs."""
    config = {
        "apiVersion": API_VERSION,
        "kind": VIRT_PLATFORM_CONFIG.name,
        "metadata": {"name": name},
        "spec": {"profile": name, **_without_nothing(_wish(form, name, None))},
    }
    try:
        await form.client.create(config)
    except AlreadyExists:
        return await _config(form, name)
    return None


async def approve_install_plan(form: SubmittedForm, key: Key) -> Outcome:
    match await approve_manually(form.client, key, form.comment, form.now):
        case InstallPlanNotApproved(_, why):
            return ActionRefused("Not approved", f"InstallPlan {key} is left alone: {why}.")
        case done:
            return ActionDone(f"You approved {done.plan} with {', '.join(done.csvs)}. OLM installs it now.")


async def choose_cluster(form: SubmittedForm, key: Key) -> Outcome:
    """A person's word counts before any strategy, but not against what is recorded already."""
    name = form.fields.get("cluster", "").strip()
    if not name:
        return ActionRefused("Not chosen", "No cluster was named.")
    machine = await form.client.get(Ref(MACHINE, key), Machine)
    if machine.request.config:
        return ActionRefused("Not chosen", f"Nothing was done: {key} is on cluster {machine.request.config} by now.")
    clusters = await form.client.list(KUBEVIRT_CONFIG, EVERYTHING, Existing)
    if all(cluster.metadata.name != name for cluster in clusters):
        return ActionRefused("Not chosen", f"Nothing was done: there is no cluster {name}.")
    metadata = {"resourceVersion": machine.metadata.resource_version, "annotations": {CONFIG_ANNOTATION: name}}
    await form.client.merge_patch(Ref(MACHINE, key), {"metadata": metadata}, manager=CONSOLE.name)
    return ActionDone(f"{key} goes to cluster {name}.")


async def resume(form: SubmittedForm, ref: Ref) -> Outcome:
    """Let the autopilot write again."""
    patch = {"metadata": {"annotations": {PAUSED: None}}}
    await form.client.merge_patch(ref, patch, manager=CONSOLE.name)
    return ActionDone(f"The autopilot looks after {ref} again.")


async def _config(form: SubmittedForm, name: str) -> VirtPlatformConfig:
    """Asked of the server, by the viewer: the cache may be behind, and is not theirs."""
    return await form.client.get(Ref(VIRT_PLATFORM_CONFIG, Key("", name)), VirtPlatformConfig)


async def _insistently(attempt: Callable[[], Awaitable[T]]) -> T:
    """Look again at a config whose status moves at the same moment, and write then; but not for ever."""
    for _ in range(manual_approval.ATTEMPTS - 1):
        try:
            return await attempt()
        except Conflict:
            continue
    return await attempt()


async def _patch(
    form: SubmittedForm, config: VirtPlatformConfig, notes: Mapping[str, str | None], spec: Mapping[str, Any]
) -> bool:
    """Just the version that was read: if it changes meanwhile, the server refuses. Tells if the spec has changed."""
    metadata: dict[str, Any] = {"resourceVersion": config.metadata.resource_version}
    if notes:
        metadata["annotations"] = dict(notes)
    ref = Ref(VIRT_PLATFORM_CONFIG, config.metadata.key)
    after = await form.client.merge_patch(ref, {"metadata": metadata, "spec": dict(spec)}, manager=CONSOLE.name)
    return bool(after["metadata"]["generation"] != config.metadata.generation)


def _without_nothing(value: Any) -> Any:
    """The same without empty values, which a create would have to refuse."""
    if not isinstance(value, dict):
        return value
    kept = {name: _without_nothing(one) for name, one in value.items() if one is not None}
    return {name: one for name, one in kept.items() if one != {}}
