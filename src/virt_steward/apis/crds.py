"""The CRDs of all our kinds. Controllers load only their own kind."""

from virt_steward.apis.installplanapprover import INSTALL_PLAN_APPROVER_CRD
from virt_steward.apis.kubevirtconfig import KUBEVIRT_CONFIG_CRD
from virt_steward.apis.virtplatformconfig import VIRT_PLATFORM_CONFIG_CRD

CRDS = (INSTALL_PLAN_APPROVER_CRD, KUBEVIRT_CONFIG_CRD, VIRT_PLATFORM_CONFIG_CRD)
