"""The Machine selects clusters by their labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from virt_steward.controllers.placement.candidates import quoted, take
from virt_steward.controllers.placement.observation import SELECTOR_ANNOTATION
from virt_steward.controllers.placement.verdicts import Abstain, Blocked, Narrowed, PlacementReason
from virt_steward.objects.selectors import BadSelector, parse_selector

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from virt_steward.controllers.placement.candidates import PlacementCase
    from virt_steward.controllers.placement.verdicts import Verdict


def cluster_selector(case: PlacementCase) -> Verdict:
    """The selector of the annotation and that of the spec, where the schema has one, must both match."""
    annotation, spec = case.machine.request.selector, case.machine.spec.cluster_selector
    conditions: list[Callable[[Mapping[str, str]], bool]] = [] if spec is None else [spec.matches]
    if annotation:
        try:
            conditions.append(parse_selector(annotation).matches)
        except BadSelector as error:
            message = f"annotation {SELECTOR_ANNOTATION} is invalid: {quoted(str(error))}"
            return Blocked(PlacementReason.BAD_SELECTOR, message)
    if not conditions:
        return Abstain("No cluster-selector annotation")
    # A KubevirtConfig that cannot be read may match, and its cluster may run the VM.
    selected = [one for one in case.candidates if one.labels is None or all(holds(one.labels) for holds in conditions)]
    selector = quoted(annotation) or "spec.clusterSelector"
    match selected:
        case []:
            message = f"no KubevirtConfig has labels that match {selector}: label one, or correct the selector"
            return Blocked(PlacementReason.NOTHING_SELECTED, message)
        case [cluster]:
            return take(cluster, f"it is the only one that matches {selector}")
        case _:
            names = tuple(one.name for one in selected)
            return Narrowed(names, f"{', '.join(names)} match {selector}")
