"""What a viewer can do in the console: each reads a form and makes one decision, with the viewer's own credentials."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from virt_steward.console import forms
from virt_steward.decisions import assets, installplans, machines, plans, profiles, rollouts
from virt_steward.decisions.configs import LONGEST_COMMENT
from virt_steward.decisions.outcomes import Decided, NotApproved, NotDecided
from virt_steward.objects.errors import UserError
from virt_steward.objects.identity import Key
from virt_steward.platform.hco import HYPERCONVERGED

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from virt_steward.decisions.outcomes import Outcome
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

    @property
    def comment(self) -> str:
        return self.fields.get("comment", "").strip()[:LONGEST_COMMENT]


async def approve_plan(form: SubmittedForm) -> Outcome:
    match await plans.approve_plan(form.client, form.name, form.plan, form.comment, form.now):
        case NotApproved(_, reason):
            return NotDecided("Not approved", f"Nothing was approved: {reason}.")
        case approved:
            return Decided(f"You approved this plan of {form.name}: {approved.start}.")


async def reject_plan(form: SubmittedForm) -> Outcome:
    return await plans.reject_plan(form.client, form.name, form.plan, form.comment)


async def stop_managing(form: SubmittedForm) -> Outcome:
    return await profiles.stop_managing(form.client, form.name)


async def roll_back(form: SubmittedForm) -> Outcome:
    return await profiles.roll_back(form.client, form.name)


async def cancel_rollback(form: SubmittedForm) -> Outcome:
    return await profiles.cancel_rollback(form.client, form.name)


async def replan(form: SubmittedForm) -> Outcome:
    return await profiles.replan(form.client, form.name)


async def activate(form: SubmittedForm) -> Outcome:
    return await profiles.activate(form.client, form.name, partial(forms.read, form.name, form.fields))


async def approve_install_plan(form: SubmittedForm) -> Outcome:
    reviewed = installplans.ReviewedPlan(form.fields.get("uid", ""), form.csvs)
    match await installplans.approve_manually(form.client, form.key, reviewed, form.comment, form.now):
        case NotApproved(plan, reason):
            return NotDecided("Not approved", f"InstallPlan {plan} was not approved: {reason}.")
        case approved:
            return Decided(f"You approved {approved.plan} with {', '.join(approved.csvs)}. OLM installs it now.")


async def choose_cluster(form: SubmittedForm) -> Outcome:
    return await machines.choose_cluster(form.client, form.key, form.fields.get("cluster", "").strip())


async def release_asset(form: SubmittedForm) -> Outcome:
    hco = next(ref.key for ref in form.asset_refs.values() if ref.kind == HYPERCONVERGED)
    return await rollouts.release(form.client, hco, [form.fields.get("staged", "")])


async def resume_asset(form: SubmittedForm) -> Outcome:
    ref = form.asset_refs.get(form.name)
    if ref is None:
        raise UnknownAsset(f"The catalog has no asset {form.name}.")
    return await assets.resume(form.client, ref)
