"""What a viewer can do in the console: each reads a form and makes one decision, with the viewer's own credentials."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from virt_steward.console import forms
from virt_steward.decisions import assets, installplans, machines, plans, profiles, rollouts
from virt_steward.decisions.freezes import FreezeTerms
from virt_steward.decisions.outcomes import Decided, NotApproved, NotDecided
from virt_steward.decisions.signatures import sign
from virt_steward.holds.freezes import NOT_FROZEN
from virt_steward.objects.errors import UserError
from virt_steward.objects.identity import Key
from virt_steward.platform.hco import HYPERCONVERGED

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from virt_steward.decisions.outcomes import Outcome
    from virt_steward.decisions.signatures import Signature
    from virt_steward.holds.freezes import FreezeState
    from virt_steward.kube.client import Client
    from virt_steward.objects.identity import Ref


class UnknownAsset(UserError):
    """The catalog has no asset of that name."""


@dataclass(frozen=True, slots=True)
class SubmittedForm:
    """A form as it was sent, and what the path says that it is about."""

    client: Client
    """Has the viewer's credentials."""
    fields: Mapping[str, str]
    match: Mapping[str, str]
    now: datetime
    asset_refs: Mapping[str, Ref]
    freeze_of: Callable[[str], FreezeState] = lambda _: NOT_FROZEN
    """Whether a controller begins nothing now."""

    @property
    def name(self) -> str:
        return self.match["name"]

    @property
    def key(self) -> Key:
        return Key(self.match["namespace"], self.name)

    @property
    def plan(self) -> str:
        """The hash of the plan that was shown."""
        return self.fields.get("plan", "")

    @property
    def csvs(self) -> tuple[str, ...]:
        """The operators of the InstallPlan that was shown; none if the form does not name them."""
        try:
            return msgspec.json.decode(self.fields.get("csvs", ""), type=tuple[str, ...])
        except ValueError:
            return ()

    def terms(self, controller: str) -> FreezeTerms:
        """Under which terms the viewer decides."""
        return FreezeTerms(self.freeze_of(controller), overrides=bool(self.fields.get("override_freeze")))

    @property
    def shown(self) -> str | None:
        """The same, for forms that need not name one."""
        return self.fields.get("plan")

    @property
    def uid(self) -> str:
        """The uid of the object that was shown."""
        return self.fields.get("uid", "")

    @property
    def comment(self) -> str:
        return self.fields.get("comment", "").strip()

    async def sign(self) -> Signature:
        """Who decides, as the API server knows them, and why."""
        return await sign(self.client, self.comment, self.now)


async def approve_plan(form: SubmittedForm) -> Outcome:
    match await plans.approve_plan(form.client, form.name, form.plan, form.comment, form.now, form.terms("advisor")):
        case NotApproved(_, reason):
            return NotDecided("Not approved", f"Nothing was approved: {reason}.")
        case approved:
            return Decided(f"You approved this plan of {form.name}: {approved.start}.")


async def reject_plan(form: SubmittedForm) -> Outcome:
    return await plans.reject_plan(form.client, form.name, form.plan, await form.sign())


async def stop_managing(form: SubmittedForm) -> Outcome:
    return await profiles.stop_managing(form.client, form.name, await form.sign(), form.shown)


async def roll_back(form: SubmittedForm) -> Outcome:
    return await profiles.roll_back(form.client, form.name, await form.sign(), form.shown)


async def cancel_rollback(form: SubmittedForm) -> Outcome:
    return await profiles.cancel_rollback(form.client, form.name, await form.sign(), form.shown)


async def replan(form: SubmittedForm) -> Outcome:
    return await profiles.replan(form.client, form.name, await form.sign(), form.shown)


async def activate(form: SubmittedForm) -> Outcome:
    options = partial(forms.read, form.name, form.fields)
    return await profiles.activate(form.client, form.name, options, await form.sign())


async def approve_install_plan(form: SubmittedForm) -> Outcome:
    reviewed = installplans.ReviewedPlan(form.uid, form.csvs)
    match await installplans.approve_manually(
        form.client, form.key, reviewed, form.comment, form.now, form.terms("approver")
    ):
        case NotApproved(plan, reason):
            return NotDecided("Not approved", f"InstallPlan {plan} was not approved: {reason}.")
        case approved:
            return Decided(f"You approved {approved.plan} with {', '.join(approved.csvs)}: {approved.next}.")


async def choose_cluster(form: SubmittedForm) -> Outcome:
    cluster = form.fields.get("cluster", "").strip()
    return await machines.choose_cluster(form.client, form.key, cluster, await form.sign(), form.uid)


async def release_asset(form: SubmittedForm) -> Outcome:
    hco = next(ref.key for ref in form.asset_refs.values() if ref.kind == HYPERCONVERGED)
    staged, terms = form.fields.get("staged", ""), form.terms("autopilot")
    return await rollouts.release(form.client, hco, [staged], await form.sign(), terms)


async def resume_asset(form: SubmittedForm) -> Outcome:
    ref = form.asset_refs.get(form.name)
    if ref is None:
        raise UnknownAsset(f"The catalog has no asset {form.name}.")
    return await assets.resume(form.client, ref, await form.sign(), form.uid)
