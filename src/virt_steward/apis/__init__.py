"""Typed spec and status of our kinds, from which their CRDs are generated.

Not here: the kinds of others, which controllers read as projections, and anything that decides or does.
"""

from virt_steward.apis.installplanapprover import INSTALL_PLAN_APPROVER_CRD
from virt_steward.apis.kubevirtconfig import KUBEVIRT_CONFIG_CRD
from virt_steward.apis.virtplatformconfig import VIRT_PLATFORM_CONFIG_CRD

CRDS = (INSTALL_PLAN_APPROVER_CRD, KUBEVIRT_CONFIG_CRD, VIRT_PLATFORM_CONFIG_CRD)
