"""What a viewer can do: each a write with their own credentials, of just what they were shown, or none at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from virt_steward.apis.virtplatformconfig import API_VERSION, VIRT_PLATFORM_CONFIG
from virt_steward.console import forms
from virt_steward.controllers.advisor import by_hand
from virt_steward.controllers.advisor.seen import (
    APPROVAL_COMMENT,
    APPROVED_BY,
    APPROVED_PLAN,
    REJECTED_BY,
    REJECTED_PLAN,
    REJECTION_COMMENT,
    Config,
)
from virt_steward.controllers.approver.by_hand import NotNow, approve_by_hand
from virt_steward.controllers.autopilot.marks import PAUSED
from virt_steward.controllers.placement.seen import CONFIG_ANNOTATION, MACHINE
from virt_steward.kube.errors import AlreadyExists, NotFound
from virt_steward.objects.identity import Key, Ref
from virt_steward.ssa.managers import CONSOLE

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from virt_steward.console.viewers import Viewer
    from virt_steward.kube.client import Client

LONGEST_COMMENT = 1024


@dataclass(frozen=True, slots=True)
class Done:
    says: str


@dataclass(frozen=True, slots=True)
class NotDone:
    """Nothing was written."""

    title: str
    why: str


Outcome = Done | NotDone


@dataclass(frozen=True, slots=True)
class Form:
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


async def approve_plan(form: Form, name: str) -> Outcome:
    """Bound to the plan that was shown: another one is not approved, and neither is one that changes meanwhile."""
    match await by_hand.approve_plan(form.client, name, form.fields.get("plan", ""), form.comment):
        case by_hand.NotNow(_, why):
            return NotDone("Not approved", f"Nothing was done: {why}.")
        case _:
            return Done(f"You approved this plan of {name}. It begins now, or as soon as its window opens.")


async def reject_plan(form: Form, name: str) -> Outcome:
    """Nothing more is done about the profile, and everybody can read why."""
    config = await _config(form, name)
    shown = form.fields.get("plan", "")
    if config.status.plan_hash != shown or config.status.phase != "ReviewRequired":
        return NotDone("Not rejected", "Nothing was done: the plan is not the one that you looked at.")
    notes = {
        REJECTED_PLAN: shown,
        REJECTED_BY: form.viewer.user,
        REJECTION_COMMENT: form.comment or None,
        APPROVED_PLAN: None,
        APPROVED_BY: None,
        APPROVAL_COMMENT: None,
    }
    await _patch(form, config, notes, {"action": "Ignore"})
    return Done(f"You rejected this plan of {name}. Nothing was changed.")


async def hand_over(form: Form, name: str) -> Outcome:
    """What was applied stays as it is, and is nobody's but yours."""
    await _patch(form, await _config(form, name), {}, {"action": "Ignore"})
    return Done(f"{name} is off. What it had applied stays, and is yours to change.")


async def undo(form: Form, name: str) -> Outcome:
    await _patch(form, await _config(form, name), {APPROVED_PLAN: None}, {"action": "Rollback"})
    return Done(f"The way back from {name} is being planned. Nothing is undone before you approve that plan.")


async def plan_anew(form: Form, name: str) -> Outcome:
    """By way of Ignore: only a change of the spec asks for another plan."""
    await _patch(form, await _config(form, name), {APPROVED_PLAN: None}, {"action": "Ignore"})
    await _patch(form, await _config(form, name), {}, {"action": "DryRun"})
    return Done(f"A new plan for {name} is being drafted.")


async def activate(form: Form, name: str) -> Outcome:
    """Ask for a plan, with the options of the form; nothing is applied."""
    options = forms.read(name, form.fields)
    spec: dict[str, Any] = {"action": "DryRun"} | ({} if options is None else {"options": options})
    config = await _config_or_none(form, name) or await _created(form, name, spec)
    if config and not await _patch(form, config, {APPROVED_PLAN: None}, spec):
        return await plan_anew(form, name)
    return Done(f"A plan for {name} is being drafted. Nothing is applied before somebody approves it.")


async def _config_or_none(form: Form, name: str) -> Config | None:
    try:
        return await _config(form, name)
    except NotFound:
        return None


async def _created(form: Form, name: str, spec: dict[str, Any]) -> Config | None:
    """Make the config. If somebody was faster, as the advisor that offers it may be, give theirs."""
    config = {
        "apiVersion": API_VERSION,
        "kind": VIRT_PLATFORM_CONFIG.name,
        "metadata": {"name": name},
        "spec": {"profile": name, **_without_nothing(spec)},
    }
    try:
        await form.client.create(config)
    except AlreadyExists:
        return await _config(form, name)
    return None


async def approve_install_plan(form: Form, key: Key) -> Outcome:
    match await approve_by_hand(form.client, key, form.comment, form.now):
        case NotNow(_, why):
            return NotDone("Not approved", f"InstallPlan {key} is left alone: {why}.")
        case done:
            return Done(f"You approved {done.plan} with {', '.join(done.csvs)}. OLM installs it now.")


async def choose_cluster(form: Form, key: Key) -> Outcome:
    """A person's word counts before any strategy."""
    name = form.fields.get("cluster", "").strip()
    if not name:
        return NotDone("Not chosen", "No cluster was named.")
    patch = {"metadata": {"annotations": {CONFIG_ANNOTATION: name}}}
    await form.client.merge_patch(Ref(MACHINE, key), patch, manager=CONSOLE.name)
    return Done(f"{key} goes to cluster {name}.")


async def resume(form: Form, ref: Ref) -> Outcome:
    """Let the autopilot write again."""
    patch = {"metadata": {"annotations": {PAUSED: None}}}
    await form.client.merge_patch(ref, patch, manager=CONSOLE.name)
    return Done(f"The autopilot looks after {ref} again.")


async def _config(form: Form, name: str) -> Config:
    """Asked of the server, by the viewer: the cache may be behind, and is not theirs."""
    return await form.client.get(Ref(VIRT_PLATFORM_CONFIG, Key("", name)), Config)


async def _patch(form: Form, config: Config, notes: Mapping[str, str | None], spec: Mapping[str, Any]) -> bool:
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
