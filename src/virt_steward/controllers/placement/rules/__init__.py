"""The chain by which a cluster is chosen, in order; one strategy per file.

Not here: anything that asks a cluster. A strategy that needs to know more says so (`Ask`).
"""

from virt_steward.controllers.placement.rules.ambiguity import ambiguity
from virt_steward.controllers.placement.rules.cluster_selector import cluster_selector
from virt_steward.controllers.placement.rules.configured import configured
from virt_steward.controllers.placement.rules.default_flag import default_flag
from virt_steward.controllers.placement.rules.environment_default import environment_default
from virt_steward.controllers.placement.rules.existing_vm import existing_vm
from virt_steward.controllers.placement.rules.explicit_annotation import explicit_annotation
from virt_steward.controllers.placement.rules.the_only_one import the_only_one

RULES = (
    explicit_annotation,
    cluster_selector,  # narrows the choice of all that follow
    environment_default,
    default_flag,
    the_only_one,
    existing_vm,
    configured,
    ambiguity,
)
