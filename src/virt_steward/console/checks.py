"""The checks that pages show, as CheckResults.

To be removed once each controller's chain gives CheckResults itself (`objects.checks`): until then, the conversion
from what `insight` and the controllers give today is here, in one place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from virt_steward.objects.checks import CheckResult

if TYPE_CHECKING:
    from collections.abc import Iterable

    from virt_steward.insight.approvals import Chain


def approval_checks(chain: Chain) -> tuple[CheckResult, ...]:
    """What one approver checks of an InstallPlan; becomes `chain.checks`."""
    return _results((step.check, step.refusal.message if step.refusal else "") for step in chain.steps)


def _results(steps: Iterable[tuple[str, str]]) -> tuple[CheckResult, ...]:
    """From names and objections; an empty objection passes, and the first other one decides."""
    results: list[CheckResult] = []
    for name, objection in steps:
        title = name.replace("_", " ").capitalize()
        if any(one.decided for one in results):
            results.append(CheckResult(title, "not reached"))
        else:
            results.append(CheckResult(title, "fail" if objection else "pass", objection, decided=bool(objection)))
    return tuple(results)
