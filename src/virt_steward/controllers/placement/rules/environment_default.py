"""The installation has a default cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from virt_steward.controllers.placement.candidates import config_not_found, take
from virt_steward.controllers.placement.verdicts import Abstain

if TYPE_CHECKING:
    from virt_steward.controllers.placement.candidates import PlacementCase
    from virt_steward.controllers.placement.verdicts import Verdict


VARIABLE = "DEFAULT_KUBEVIRT_CONFIG"


def environment_default(case: PlacementCase) -> Verdict:
    name = case.rules.default_config
    if not name:
        return Abstain(f"{VARIABLE} is not set")
    if cluster := case.named(name):
        return take(cluster, f"{VARIABLE} is {name}")
    if any(one.name == name for one in case.observation.clusters):
        return Abstain(f"{VARIABLE} is {name}, which the cluster selector excludes")
    return config_not_found(name, VARIABLE)
