"""Activate a profile, stop managing it, roll it back, cancel a rollback, or ask for a new plan."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from virt_steward.apis.virtplatformconfig import API_VERSION, VIRT_PLATFORM_CONFIG
from virt_steward.controllers.advisor.annotation_keys import APPROVED_PLAN, DECISION, REQUESTED_BY, UNAPPROVED
from virt_steward.decisions.configs import patch_config, plan_changed, read_config, retry_on_conflict
from virt_steward.decisions.outcomes import Decided, NotDecided, PartlyDecided
from virt_steward.decisions.plans import still_managed
from virt_steward.kube.errors import AlreadyExists, KubeError, NotFound

if TYPE_CHECKING:
    from virt_steward.apis.virtplatformconfig import Action
    from virt_steward.controllers.advisor.observation import VirtPlatformConfig
    from virt_steward.decisions.outcomes import Outcome
    from virt_steward.decisions.signatures import Signature
    from virt_steward.kube.client import Client
    from virt_steward.objects.decision_record import Verb

OptionsPatch = Callable[[Mapping[str, Any]], dict[str, Any] | None]
"""From the current options to a merge patch for them; None if the profile has no options."""

POLLS = 30
"""How often to check whether the advisor has observed a change."""
POLL_INTERVAL = 0.1
"""Seconds between two polls."""


async def stop_managing(
    client: Client, profile: str, signature: Signature, shown: str | None = None
) -> Decided | NotDecided:
    """Set action Ignore. Applied changes stay as they are, and nobody reverts a change of them.

    Here and below, `shown` is the hash of the plan that the person saw; None: whichever it is.
    """

    async def attempt() -> Decided | NotDecided:
        config = await read_config(client, profile)
        if is_another_plan(config, shown):
            return NotDecided("Still managed", _unchanged(config))
        await patch_config(client, config, signature.record(DECISION, "stop-managing"), {"action": "Ignore"})
        return Decided(f"{profile} is now inactive (action: Ignore). Applied changes stay, but are no longer managed.")

    return await retry_on_conflict(attempt)


async def roll_back(
    client: Client, profile: str, signature: Signature, shown: str | None = None
) -> Decided | NotDecided:
    """Ask for a rollback plan."""

    async def attempt() -> Decided | NotDecided:
        config = await read_config(client, profile)
        if is_another_plan(config, shown):
            return NotDecided("Not rolled back", _unchanged(config))
        if not has_executed_plan(config):
            remedy = "To keep a plan from being executed, reject it, or set spec.action to Ignore."
            return _nothing_executed("Not rolled back", profile, remedy)
        annotations = {APPROVED_PLAN: None, **_request(signature, "rollback")}
        await patch_config(client, config, annotations, {"action": "Rollback"})
        return Decided(f"The rollback plan of {profile} is being drafted. Nothing changes until you approve it.")

    return await retry_on_conflict(attempt)


def has_executed_plan(config: VirtPlatformConfig) -> bool:
    """Whether a rollback plan can be drafted: what was there before is recorded when a plan applies its first item."""
    return bool(config.status.pre_image)


def _nothing_executed(title: str, profile: str, remedy: str) -> NotDecided:
    reason = (
        f"There is no executed plan of {profile} to roll back: nothing was applied, or it is rolled back already."
        f" Nothing was changed. {remedy}"
    )
    return NotDecided(title, reason)


def _request(signature: Signature, verb: Verb) -> dict[str, str | None]:
    """The annotations of a decision that asks for a plan. The requester may be excluded from approving it."""
    return {**signature.record(DECISION, verb), REQUESTED_BY: signature.user}


def is_another_plan(config: VirtPlatformConfig, shown: str | None) -> bool:
    return shown is not None and shown != config.status.plan_hash


def _unchanged(config: VirtPlatformConfig) -> str:
    return f"Nothing was changed: {plan_changed(config.status.plan_hash)}."


def is_rolling_back(config: VirtPlatformConfig) -> bool:
    """Whether a rollback was asked for and has not completed."""
    is_rolled_back = config.status.plan_action == "Rollback" and config.status.phase == "Completed"
    return config.spec.action == "Rollback" and not is_rolled_back


async def cancel_rollback(
    client: Client, profile: str, signature: Signature, shown: str | None = None
) -> Decided | NotDecided:
    """Manage the profile again. What was rolled back already is applied again only after an approval."""

    async def attempt() -> Decided | NotDecided:
        config = await read_config(client, profile)
        if is_another_plan(config, shown):
            return NotDecided("Not cancelled", _unchanged(config))
        if not is_rolling_back(config):
            return NotDecided("Not cancelled", f"{profile} is not being rolled back. Nothing was changed.")
        annotations = {**UNAPPROVED, **_request(signature, "cancel-rollback")}
        await patch_config(client, config, annotations, {"action": "DryRun"})
        return Decided(f"The rollback of {profile} is cancelled. {still_managed(profile)}")

    return await retry_on_conflict(attempt)


async def replan(client: Client, profile: str, signature: Signature, shown: str | None = None) -> Outcome:
    """Ask for a new plan in the same direction: forward, or the rollback if one was asked for.

    The advisor drafts a plan only when the spec changes. If the action that asks for a plan is set already, it takes
    two writes: first Ignore, then the action again. Example: action is DryRun, so write Ignore and then DryRun. If
    the second write fails, the profile is left inactive, which the outcome says.
    """
    before = await retry_on_conflict(lambda: _request_plan(client, profile, signature, shown))
    if isinstance(before, NotDecided):
        return before
    action = _direction(before)
    if before.spec.action != action:
        return Decided(_replan_message(profile, action))
    try:
        if action == "Rollback":
            await _wait_until_observed(client, profile)
        return await retry_on_conflict(lambda: _reactivate(client, profile, action))
    except KubeError as error:
        reason = (
            f"{profile} was set to Ignore to request a new plan, but setting it back to {action} failed: {error}."
            " Applied changes stay. If the profile is inactive, ask for a new plan again."
        )
        return PartlyDecided("Only partly done", reason)


def _direction(config: VirtPlatformConfig) -> Action:
    return "Rollback" if config.spec.action == "Rollback" else "DryRun"


def _replan_message(profile: str, action: Action) -> str:
    if action == "Rollback":
        return f"A new rollback plan for {profile} is being drafted. Nothing changes until you approve it."
    return f"A new plan for {profile} is being drafted. Nothing changes until somebody approves it."


async def _request_plan(
    client: Client, profile: str, signature: Signature, shown: str | None
) -> VirtPlatformConfig | NotDecided:
    """Set the action that asks for a plan, or Ignore if it is set already. Returns the config as it was before."""
    config = await read_config(client, profile)
    if is_another_plan(config, shown):
        return NotDecided("No new plan", _unchanged(config))
    action = _direction(config)
    if action == "Rollback" and not has_executed_plan(config):
        remedy = "For a plan forward, set spec.action to DryRun."
        return _nothing_executed("No new plan", profile, remedy)
    annotations = {**UNAPPROVED, **_request(signature, "replan")}
    await patch_config(client, config, annotations, {"action": "Ignore" if config.spec.action == action else action})
    return config


async def _reactivate(client: Client, profile: str, action: Action) -> Decided:
    config = await read_config(client, profile)
    if config.spec.action != "Ignore":
        return Decided(f"Somebody set {profile} to {config.spec.action} at the same moment; their change is kept.")
    await patch_config(client, config, {}, {"action": action})
    return Decided(_replan_message(profile, action))


async def _wait_until_observed(client: Client, profile: str) -> None:
    """Wait for the advisor to observe Ignore, without which it keeps the old rollback plan; give up if it is down."""
    for _ in range(POLLS):
        if not (await read_config(client, profile)).is_touched:
            return
        await asyncio.sleep(POLL_INTERVAL)


async def activate(client: Client, profile: str, options: OptionsPatch, signature: Signature) -> Outcome:
    """Ask for a plan with these options; nothing is applied."""
    return await retry_on_conflict(lambda: _activate(client, profile, options, signature))


async def _activate(client: Client, profile: str, options: OptionsPatch, signature: Signature) -> Outcome:
    config = await _read_or_none(client, profile) or await _create(client, profile, options, signature)
    if config:
        spec = _requested_spec(options, msgspec.to_builtins(config.options))
        annotations = {**UNAPPROVED, **_request(signature, "activate")}
        if not await patch_config(client, config, annotations, spec):
            return await replan(client, profile, signature)
    return Decided(f"A plan for {profile} is being drafted. Nothing is applied until somebody approves it.")


def _requested_spec(options: OptionsPatch, current: Mapping[str, Any]) -> dict[str, Any]:
    patch = options(current)
    return {"action": "DryRun"} | ({} if patch is None else {"options": patch})


async def _read_or_none(client: Client, profile: str) -> VirtPlatformConfig | None:
    try:
        return await read_config(client, profile)
    except NotFound:
        return None


async def _create(
    client: Client, profile: str, options: OptionsPatch, signature: Signature
) -> VirtPlatformConfig | None:
    """Create the config. If somebody else did so first, as the advisor may, return theirs."""
    config = {
        "apiVersion": API_VERSION,
        "kind": VIRT_PLATFORM_CONFIG.name,
        "metadata": {"name": profile, "annotations": _without_empty(_request(signature, "activate"))},
        "spec": {"profile": profile, **_without_empty(_requested_spec(options, {}))},
    }
    try:
        await client.create(config)
    except AlreadyExists:
        return await read_config(client, profile)
    return None


def _without_empty(value: Any) -> Any:
    """The same without empty values, which a create would have to refuse."""
    if not isinstance(value, dict):
        return value
    kept = {name: _without_empty(one) for name, one in value.items() if one is not None}
    return {name: one for name, one in kept.items() if one != {}}
