"""An admission policy for the stamps on InstallPlans: nobody can claim an approval that they did not give."""

from __future__ import annotations

from virt_steward.apis.installplanapprover import INSTALL_PLAN_APPROVER
from virt_steward.controllers.approver.manual_approval import APPROVAL_COMMENT, APPROVED_AT, APPROVED_BY_USER
from virt_steward.controllers.approver.olm import APPROVED_BECAUSE, APPROVED_BY, INSTALL_PLAN
from virt_steward.runtime.admission import annotation_policy, names_caller, unchanged

NAME = f"approved-by.{INSTALL_PLAN_APPROVER.group}"
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
    NAME,
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
)
