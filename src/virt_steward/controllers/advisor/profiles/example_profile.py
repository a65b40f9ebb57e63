"""The smallest profile, to try the workflow and to start a new one from. It is not advertised."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from virt_steward.apis.profiles import EXAMPLE
from virt_steward.controllers.advisor.profiles.profile import Profile, ProfileDescription
from virt_steward.objects.corekinds import CONFIG_MAP
from virt_steward.objects.identity import Key, Ref
from virt_steward.plans.fields import fields_set_by
from virt_steward.plans.intent import Impacts, Intent

if TYPE_CHECKING:
    from virt_steward.controllers.advisor.options import AdvisorOptions
    from virt_steward.controllers.advisor.profiles.profile import ProfileContext


def profile(options: AdvisorOptions) -> Profile:
    target = Ref(CONFIG_MAP, Key(options.hco.namespace, "example-config"))
    return Profile(
        name=EXAMPLE,
        about=ProfileDescription(
            category="example",
            description="Writes one value into a ConfigMap, to show how profiles work",
            impact="Low",
            impact_summary="Low - Nobody reads that ConfigMap",
            options="none",
            is_advertised=False,
        ),
        targets=(target,),
        prerequisites=lambda _: (),
        intents=partial(_intents, target),
        inputs=lambda _: (),
    )


def _intents(target: Ref, _: ProfileContext) -> tuple[Intent, ...]:
    desired = {
        "apiVersion": "v1",
        "kind": CONFIG_MAP.name,
        "metadata": {"name": target.key.name, "namespace": target.key.namespace},
        "data": {"example-key": "example-value"},
    }
    return (
        Intent(
            name="configure-example-component",
            desired=desired,
            fields=fields_set_by(desired),
            impacts=Impacts(creates="Low", changes="Low"),
            message=f"ConfigMap '{target.key.name}' will get an example value",
        ),
    )
