"""The machine names its cluster. A choice once recorded is never changed here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from virt_steward.controllers.placement.candidates import keep, missing
from virt_steward.controllers.placement.observation import CONFIG_ANNOTATION
from virt_steward.controllers.placement.verdicts import Abstain

if TYPE_CHECKING:
    from virt_steward.controllers.placement.candidates import PlacementCase
    from virt_steward.controllers.placement.verdicts import Verdict


def explicit_annotation(case: PlacementCase) -> Verdict:
    name = case.machine.wishes.config
    if not name:
        return Abstain(f"it has no annotation {CONFIG_ANNOTATION}")
    cluster = case.named(name)
    return keep(cluster, f"its annotation says {name}") if cluster else missing(name, f"annotation {CONFIG_ANNOTATION}")
