"""The chain of rules by which a cluster is chosen, in order; one rule per file.

Not here: requests to clusters. A rule that needs to know where the VM is asks for it (`Ask`). Not here either: how to
choose among clusters that are all suitable (`strategies/`).
"""

from virt_steward.controllers.placement.rules.ambiguity import ambiguity
from virt_steward.controllers.placement.rules.cluster_selector import cluster_selector
from virt_steward.controllers.placement.rules.configured import configured
from virt_steward.controllers.placement.rules.default_flag import default_flag
from virt_steward.controllers.placement.rules.environment_default import environment_default
from virt_steward.controllers.placement.rules.existing_vm import existing_vm
from virt_steward.controllers.placement.rules.explicit_annotation import explicit_annotation
from virt_steward.controllers.placement.rules.no_freeze import no_freeze
from virt_steward.controllers.placement.rules.rule import PlacementRule
from virt_steward.controllers.placement.rules.the_only_one import the_only_one

STRATEGY_RULE = PlacementRule("Placement strategy", configured)

RULES = (
    PlacementRule("Cluster named by annotation", explicit_annotation),
    PlacementRule("No freeze", no_freeze),
    PlacementRule("Cluster selector", cluster_selector),  # narrows the candidates for all rules after it
    PlacementRule("Environment default", environment_default),
    PlacementRule("Default KubevirtConfig", default_flag),
    PlacementRule("Only one cluster", the_only_one),
    PlacementRule("VM already exists", existing_vm),
    STRATEGY_RULE,
    PlacementRule("Unambiguous", ambiguity),
)
