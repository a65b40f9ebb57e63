"""What the console has seen of each node's updates since it runs. In memory, and bounded.

The API keeps no history of a node: its annotations say how far it is now, and its condition Ready since when it is
ready. So the log starts when the console starts, and a timeline says where it does not know more.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from virt_steward.objects.identity import Key
    from virt_steward.platform.nodes import NodeFacts

NodeActivity = Literal["settled", "updating", "rebooting", "degraded"]

MOST_NODES = 2_000
"""Those that changed last are kept; with what is kept of each, about 3 MB at most."""
KEPT = 16
"""Changes of one node: four updates with all their steps."""


class NodeChange(NamedTuple):
    """A node has begun to be so."""

    at: datetime
    activity: NodeActivity
    config: str
    """The rendered configuration that it runs."""
    is_first: bool = False
    """The console has just begun to watch it, so it may have been so for long."""


class RolloutLog:
    """The changes of each node, by name."""

    def __init__(self, utc: Callable[[], datetime]) -> None:
        self._utc = utc
        self._changes: OrderedDict[str, deque[NodeChange]] = OrderedDict()

    def handle(self, key: Key, _before: NodeFacts | None, after: NodeFacts | None) -> None:
        """Take a change of a node, as an informer reports it."""
        if after is None:
            self._changes.pop(key.name, None)
            return
        activity, config = activity_of(after), after.rollout.current
        known = self._changes.get(key.name)
        if known is None:
            known = self._changes[key.name] = deque(maxlen=KEPT)
        elif (known[-1].activity, known[-1].config) == (activity, config):
            return
        known.append(NodeChange(self._utc(), activity, config, is_first=not known))
        self._changes.move_to_end(key.name)
        if len(self._changes) > MOST_NODES:
            self._changes.popitem(last=False)

    def of(self, node: str) -> Sequence[NodeChange]:
        """The oldest first; empty for a node that is not recorded."""
        return tuple(self._changes.get(node, ()))


def activity_of(node: NodeFacts) -> NodeActivity:
    state = node.rollout
    if state.state == "Degraded":
        return "degraded"
    if state.state == "Working" or state.desired != state.current:
        return "updating" if node.ready else "rebooting"
    return "settled"
