"""An admission policy for the stamps on InstallPlans: nobody can claim an approval that they did not give."""

from __future__ import annotations

from virt_steward.apis.installplanapprover import INSTALL_PLAN_APPROVER
from virt_steward.controllers.approver.manual_approval import (
    APPROVAL_COMMENT,
    APPROVED_AT,
    APPROVED_BY_USER,
    OVERRIDE_FREEZE,
    OVERRIDE_FREEZE_BY,
    OVERRIDE_FREEZE_COMMENT,
)
from virt_steward.controllers.approver.olm import (
    APPROVALS,
    APPROVED_BECAUSE,
    APPROVED_BY,
    INSTALL_PLAN,
    REQUIRED_APPROVALS,
)
from virt_steward.controllers.approver.policy import ADMISSION_POLICY
from virt_steward.runtime.admission import (
    annotation_policy,
    approvals_of_caller,
    freeze_override,
    names_caller,
    only_decides,
    unchanged,
)

_IS_APPROVER = (
    f"authorizer.group('{INSTALL_PLAN_APPROVER.group}').resource('{INSTALL_PLAN_APPROVER.plural}')"
    ".subresource('status').namespace(object.metadata.namespace).check('patch').allowed()"
)
"""By its rights and not by its name, which an admin chooses: it writes the statuses that count approvals."""
_SIGNS = names_caller(APPROVED_BY_USER)


def _unless(allowed: str, *keys: str) -> str:
    """Leaving the annotations as they are is allowed to everybody: OLM and others write the plan, too."""
    return f"({unchanged(*keys)}) || {allowed}"


POLICIES = annotation_policy(
    ADMISSION_POLICY,
    INSTALL_PLAN,
    {
        "expression": _unless(_IS_APPROVER, APPROVED_BY, APPROVED_BECAUSE),
        "message": f"{APPROVED_BY} and {APPROVED_BECAUSE} are written by the approver alone",
        "reason": "Forbidden",
    },
    {
        "expression": _unless(f"{_SIGNS} || {_IS_APPROVER}", APPROVED_BY_USER, APPROVED_AT, APPROVAL_COMMENT),
        "messageExpression": f"'{APPROVED_BY_USER} may only name yourself: ' + request.userInfo.username",
        "reason": "Forbidden",
    },
    approvals_of_caller(APPROVALS),
    {
        "expression": _unless(_IS_APPROVER, REQUIRED_APPROVALS),
        "message": f"{REQUIRED_APPROVALS} is written by the approver alone",
        "reason": "Forbidden",
    },
    {
        "expression": f"!('{REQUIRED_APPROVALS}' in variables.before) || !object.spec.?approved.orValue(false)"
        f" || oldObject.spec.?approved.orValue(false) || {_IS_APPROVER}",
        "message": "several people must approve this InstallPlan, and the approver then does:"
        " add your approval with 'virt-steward approve installplan NAMESPACE/NAME'",
        "reason": "Forbidden",
    },
    *freeze_override(INSTALL_PLAN, OVERRIDE_FREEZE, OVERRIDE_FREEZE_BY, OVERRIDE_FREEZE_COMMENT),
    only_decides(
        INSTALL_PLAN,
        APPROVED_BY_USER,
        APPROVED_AT,
        APPROVAL_COMMENT,
        APPROVALS,
        OVERRIDE_FREEZE,
        OVERRIDE_FREEZE_BY,
        OVERRIDE_FREEZE_COMMENT,
        field="approved",
    ),
)
