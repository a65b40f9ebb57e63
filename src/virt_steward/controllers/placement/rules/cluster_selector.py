"""The machine says what its cluster must be like."""

from __future__ import annotations

from typing import TYPE_CHECKING

from virt_steward.controllers.placement.candidates import shown, take
from virt_steward.controllers.placement.observation import SELECTOR_ANNOTATION
from virt_steward.controllers.placement.verdicts import Abstain, Blocked, Narrowed, PlacementReason
from virt_steward.objects.selectors import BadSelector, parse_selector

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from virt_steward.controllers.placement.candidates import PlacementCase
    from virt_steward.controllers.placement.verdicts import Verdict


def cluster_selector(case: PlacementCase) -> Verdict:
    """All that is asked for must hold: the annotation's selector, and that of the spec where the schema keeps one."""
    wish, spec = case.machine.wishes.selector, case.machine.spec.cluster_selector
    conditions: list[Callable[[Mapping[str, str]], bool]] = [] if spec is None else [spec.matches]
    if wish:
        try:
            conditions.append(parse_selector(wish).matches)
        except BadSelector as error:
            return Blocked(PlacementReason.BAD_SELECTOR, f"annotation {SELECTOR_ANNOTATION}: {shown(str(error))}")
    if not conditions:
        return Abstain("it selects no clusters")
    # One whose labels cannot be read may be meant, and may run the machine.
    selected = [one for one in case.candidates if one.labels is None or all(holds(one.labels) for holds in conditions)]
    words = shown(wish) or "spec.clusterSelector"
    match selected:
        case []:
            return Blocked(PlacementReason.NOTHING_SELECTED, f"no KubevirtConfig has labels that match {words}")
        case [cluster]:
            return take(cluster, f"it is the only one that matches {words}")
        case _:
            names = tuple(one.name for one in selected)
            return Narrowed(names, f"{', '.join(names)} match {words}")
