"""Which plans wait, for whom and why, as far as they have been judged since we lead."""

from __future__ import annotations

from typing import TYPE_CHECKING

from virt_steward.controllers.approver.watches import ApproverKey

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping

    from virt_steward.controllers.approver.verdicts import WaitForPlan
    from virt_steward.objects.identity import Key


class Pending:
    """Derived from the cluster and never written down: after a restart, every plan is judged again."""

    def __init__(self, wake: Callable[[Hashable], None]) -> None:
        self._wake = wake
        self._waits: dict[Key, Mapping[Key, WaitForPlan]] = {}

    def __contains__(self, plan: Key) -> bool:
        """Whether the plan has been judged."""
        return plan in self._waits

    def set(self, plan: Key, waits: Mapping[Key, WaitForPlan]) -> list[Key]:
        """Keep what each approver waits for; gives those for whom that is news."""
        before = self._waits.get(plan, {})
        self._waits[plan] = waits
        news = [approver for approver in {**before, **waits} if before.get(approver) != waits.get(approver)]
        for approver in news:
            self._wake(ApproverKey(approver))
        return news

    def forget(self, plan: Key) -> None:
        for approver in self._waits.pop(plan, {}):
            self._wake(ApproverKey(approver))

    def of(self, approver: Key) -> list[tuple[Key, WaitForPlan]]:
        """The plans that one approver lets wait."""
        return [(plan, waits[approver]) for plan, waits in self._waits.items() if approver in waits]
