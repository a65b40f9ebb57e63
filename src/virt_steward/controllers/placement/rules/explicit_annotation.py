"""The Machine names its cluster. A recorded choice is never changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from virt_steward.controllers.placement.candidates import config_not_found, keep
from virt_steward.controllers.placement.observation import CONFIG_ANNOTATION
from virt_steward.controllers.placement.verdicts import Abstain

if TYPE_CHECKING:
    from virt_steward.controllers.placement.candidates import PlacementCase
    from virt_steward.controllers.placement.verdicts import Verdict


def explicit_annotation(case: PlacementCase) -> Verdict:
    name = case.machine.request.config
    if not name:
        return Abstain(f"No {CONFIG_ANNOTATION} annotation")
    if cluster := case.named(name):
        return keep(cluster, f"its annotation names {name}")
    return config_not_found(name, f"annotation {CONFIG_ANNOTATION}")
