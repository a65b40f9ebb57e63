"""Observations of a platform and decisions on its assets, with sane defaults."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from virt_steward.catalog.asset import Asset
from virt_steward.catalog.context import AssetContext
from virt_steward.catalog.load import Catalog
from virt_steward.catalog.render import Renderer
from virt_steward.controllers.autopilot.annotation_keys import SCOPE
from virt_steward.controllers.autopilot.asset_report import AssetReport, report_of
from virt_steward.controllers.autopilot.decide import decide
from virt_steward.controllers.autopilot.observation import AutopilotObservation, Served
from virt_steward.controllers.autopilot.options import HCO
from virt_steward.objects.identity import Ref, Regarding
from virt_steward.platform.hco import HYPERCONVERGED

NOW = datetime(2030, 1, 1, tzinfo=UTC)
REGARDING = Regarding(Ref(HYPERCONVERGED, HCO), "hco.kubevirt.io/v1", "u-hco")


@dataclass(frozen=True, slots=True)
class ServesAll:
    """A server with every CRD."""

    def serves(self, _group: str, _plural: str) -> bool:
        return True


def an_observation(
    context: AssetContext, served: Served | None = None, scope: Collection[str] | None = None
) -> AutopilotObservation:
    """A platform with this context, an allow-list if one is given, and the namespaces of all assets."""
    if scope is not None:
        annotations = {**context.hco.annotations, SCOPE: ",".join(scope)}
        context = replace(context, hco=replace(context.hco, annotations=annotations))
    return AutopilotObservation.of(REGARDING, context, served or ServesAll(), EVERY_NAMESPACE)


class EveryNamespace(frozenset[str]):
    """All namespaces that there may be."""

    def __contains__(self, _name: object) -> bool:
        return True


EVERY_NAMESPACE = EveryNamespace()


def report(asset: Asset, observation: AutopilotObservation, catalog: Catalog | None = None) -> AssetReport:
    """What becomes of an asset whose object does not exist yet."""
    return report_of(asset, decide(asset, observation, None, Renderer(catalog or Catalog((asset,))), NOW))
