"""The placement strategies: ways to choose among clusters that are all suitable; one per file.

A new strategy is one file and one entry of the tuple below: the values of `--placement-strategy` and of the annotation
`vitistack.io/placement-strategy`, and the help, follow from it. Not here: which clusters are suitable (`rules/`).
"""

from virt_steward.controllers.placement.strategies.least_loaded import LEAST_LOADED
from virt_steward.controllers.placement.strategies.round_robin import ROUND_ROBIN
from virt_steward.controllers.placement.strategies.spread import SPREAD
from virt_steward.controllers.placement.strategies.strategy import PlacementStrategy
from virt_steward.controllers.placement.strategies.weight import WEIGHT

NO_STRATEGY = "none"

STRATEGIES: dict[str, PlacementStrategy] = {
    one.name: one
    for one in (
        ROUND_ROBIN,
        LEAST_LOADED,
        SPREAD,
        WEIGHT,
    )
}

STRATEGY_NAMES = (NO_STRATEGY, *STRATEGIES)
STRATEGY_HELP = "; ".join(f"{one.name}: {one.help}" for one in STRATEGIES.values())
