"""An admission policy for decisions on plans: who may make them, and that users sign them with their own name.

A request that can start a change of the platform needs the verb `approve`. `update` suffices as well: who has full
rights to write VirtPlatformConfigs could always set action Apply. The role of a requester has `patch` alone.
"""

from __future__ import annotations

from typing import Any

from virt_steward.apis.virtplatformconfig import VIRT_PLATFORM_CONFIG
from virt_steward.controllers.advisor.annotation_keys import (
    APPROVAL_COMMENT,
    APPROVALS,
    APPROVED_BY,
    APPROVED_PLAN,
    DECISION,
    OVERRIDE_FREEZE,
    OVERRIDE_FREEZE_BY,
    OVERRIDE_FREEZE_COMMENT,
    REJECTED_BY,
    REJECTED_GENERATION,
    REJECTED_PLAN,
    REJECTION_COMMENT,
    REQUESTED_BY,
)
from virt_steward.controllers.advisor.approval import ADMISSION_POLICY
from virt_steward.runtime.admission import (
    APPROVE_VERB,
    added,
    annotation_policy,
    approvals_of_caller,
    decided_by_caller,
    freeze_override,
    may,
    names_caller,
    unchanged,
)

RELAX_APPROVALS_VERB = "relax-approvals"
"""The verb that lets a person lower spec.approvals."""
_LINES = f"variables.{{0}}[?'{APPROVALS}'].orValue('').split('\\n')"
_OLD_APPROVALS = "oldObject.spec.?approvals"
_NEW_APPROVALS = "object.spec.?approvals"
_SAME_OPTIONS = "object.spec.?options.orValue({}) == oldObject.spec.?options.orValue({})"
_APPROVES = (
    "object.?status.phase.orValue('') == 'ReviewRequired'"
    f" && {_LINES.format('now')}.exists(line, !(line in {_LINES.format('before')})"
    f" && line.startsWith(object.?status.planHash.orValue('none') + ' ')) && {_SAME_OPTIONS}"
)
"""The request adds an approval of the plan in review; whose, the check of the approvals says."""
_ASKS = (
    "object.spec.?action.orValue('') != 'Ignore' && (oldObject == null"
    f" || !({_SAME_OPTIONS}) || (object.spec.?action != oldObject.spec.?action && !({_APPROVES}))"
    f" || {_NEW_APPROVALS}.excludeRequester.orValue(false) != {_OLD_APPROVALS}.excludeRequester.orValue(false))"
)
"""The request may lead to a plan. Approving one sets the action to Apply, too, and does not."""
_MAY_RELAX = may(RELAX_APPROVALS_VERB, VIRT_PLATFORM_CONFIG)
_MAY_APPROVE = f"{may(APPROVE_VERB, VIRT_PLATFORM_CONFIG)} || {may('update', VIRT_PLATFORM_CONFIG)}"
_STARTS = (
    "object.spec.?action.orValue('') in ['Apply', 'Rollback'] && (oldObject == null || object.spec != oldObject.spec)"
)
"""Under these actions any field counts: other options approve their plan, and a freeze that is removed starts it."""
_DECIDES = added(APPROVED_PLAN, APPROVED_BY, APPROVALS, REJECTED_PLAN, REJECTED_BY, REJECTED_GENERATION)


_IS_REQUESTER = names_caller(REQUESTED_BY)


def _signed_by_caller(plan: str, by: str, *besides: str) -> dict[str, Any]:
    """The name that signs a decision must be that of the caller, or empty.

    That is not asked of a request that leaves the decision as it is, or that only removes the plan from it. It is asked
    when another plan is put under an existing name: that would be a signature of somebody who has not seen the plan.
    """
    untouched = unchanged(plan, by, *besides)
    withdrawn = f"!('{plan}' in variables.now) && {unchanged(by)}"
    is_theirs = f"variables.now[?'{by}'].orValue('') in ['', request.userInfo.username]"
    return {
        "expression": f"({untouched}) || ({withdrawn}) || {is_theirs}",
        "messageExpression": f"'{by} may only name yourself: ' + request.userInfo.username",
        "reason": "Forbidden",
    }


POLICIES = annotation_policy(
    ADMISSION_POLICY,
    VIRT_PLATFORM_CONFIG,
    _signed_by_caller(APPROVED_PLAN, APPROVED_BY, APPROVAL_COMMENT),
    _signed_by_caller(REJECTED_PLAN, REJECTED_BY, REJECTION_COMMENT, REJECTED_GENERATION),
    decided_by_caller(DECISION),
    approvals_of_caller(APPROVALS),
    {
        "expression": f"({unchanged(REQUESTED_BY)}) || !('{REQUESTED_BY}' in variables.now) || {_IS_REQUESTER}",
        "messageExpression": f"'{REQUESTED_BY} may only name yourself: ' + request.userInfo.username",
        "reason": "Forbidden",
    },
    {
        "expression": f"!{_NEW_APPROVALS}.excludeRequester.orValue(false) || !({_ASKS}) || {_IS_REQUESTER}",
        "messageExpression": "'spec.approvals.excludeRequester is set, so the requester of a plan must be known:"
        f" set the annotation {REQUESTED_BY} to ' + request.userInfo.username",
        "reason": "Forbidden",
    },
    {
        "expression": f"oldObject == null || ({_NEW_APPROVALS}.required.orValue(0) >="
        f" {_OLD_APPROVALS}.required.orValue(0) && ({_NEW_APPROVALS}.excludeRequester.orValue(false)"
        f" || !{_OLD_APPROVALS}.excludeRequester.orValue(false))) || {_MAY_RELAX}",
        "message": "spec.approvals can be lowered or removed only with the right to relax-approvals on"
        " virtplatformconfigs.advisor.kubevirt.io",
        "reason": "Forbidden",
    },
    {
        "expression": f"!({_STARTS}) && !({_DECIDES}) || {_MAY_APPROVE}",
        "message": "to approve, reject or roll back a plan, you need the verb approve on"
        " virtplatformconfigs.advisor.kubevirt.io; without it you may set action DryRun or Ignore",
        "reason": "Forbidden",
    },
    *freeze_override(VIRT_PLATFORM_CONFIG, OVERRIDE_FREEZE, OVERRIDE_FREEZE_BY, OVERRIDE_FREEZE_COMMENT),
)
