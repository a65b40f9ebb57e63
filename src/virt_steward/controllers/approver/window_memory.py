"""The state of maintenance windows, evaluated once and remembered until it may change.

To evaluate a window takes milliseconds, and anybody who may write an InstallPlanApprover may write twenty of them. So
a window costs that once per change of its state, not once per plan and approver, however many share it.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from virt_steward.objects.windows import BadWindow, Closed, Open, Window, state_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from virt_steward.apis.meta import WindowSpec
    from virt_steward.objects.windows import State

REMEMBERED = 20_000


@dataclass(frozen=True, slots=True)
class _Remembered:
    state: State | None
    """None: the window is invalid."""
    fault: str
    since: datetime

    def holds(self, now: datetime) -> bool:
        """Whether evaluating it again would lead to the same. The clock may have been put back, too."""
        if self.state is None:
            return True
        return self.since <= now and (self.state.until is None or now < self.state.until)


class WindowMemory:
    """Remembers the windows that were asked for last."""

    def __init__(self, size: int = REMEMBERED) -> None:
        self._size = size
        self._known: OrderedDict[WindowSpec, _Remembered] = OrderedDict()
        self.evaluations = 0
        """How often a window was evaluated."""

    def knows(self, window: WindowSpec, now: datetime) -> bool:
        """Whether it need not be evaluated."""
        known = self._known.get(window)
        return known is not None and known.holds(now)

    def fault(self, window: WindowSpec, now: datetime) -> str:
        """What is invalid about it; empty if nothing is."""
        return self._look(window, now).fault

    def never_opens(self, window: WindowSpec, now: datetime) -> bool:
        return self._look(window, now).state == Closed(None)

    def state(self, windows: Sequence[WindowSpec], now: datetime) -> State:
        """Whether one of the windows is open, and until when that holds at least. Invalid ones never open."""
        states = [self._look(one, now).state for one in windows]
        if is_open := [one.until for one in states if isinstance(one, Open) and one.until]:
            return Open(max(is_open))
        return Closed(min((one.until for one in states if one and one.until), default=None))

    def _look(self, window: WindowSpec, now: datetime) -> _Remembered:
        known = self._known.get(window)
        if known is None or not known.holds(now):
            self.evaluations += 1
            known = self._known[window] = _evaluate(window, now)
        self._known.move_to_end(window)
        if len(self._known) > self._size:
            self._known.popitem(last=False)
        return known


def _evaluate(window: WindowSpec, now: datetime) -> _Remembered:
    try:
        parsed = Window.parse(window.schedule, window.duration, window.time_zone)
    except BadWindow as error:
        return _Remembered(None, str(error), now)
    return _Remembered(state_of(parsed, now), "", now)


WINDOWS = WindowMemory()
"""Of this process: its controller and its console ask for the same windows."""
