"""What a controller is to the manager: rights, triggers and a reconcile."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from virt_steward.kube.watch import Projected
from virt_steward.objects.identity import Key

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from virt_steward.kube.client import Client
    from virt_steward.kube.events import Recorder
    from virt_steward.runtime.access import Access
    from virt_steward.runtime.clock import Clock
    from virt_steward.runtime.debug import DebugPage
    from virt_steward.runtime.informer import Source
    from virt_steward.runtime.informers import InformerView
    from virt_steward.runtime.notifications import NotificationSender
    from virt_steward.runtime.outcomes import Outcome
    from virt_steward.runtime.store import Store

T = TypeVar("T", bound=Projected)
EventHandler = Callable[[Key, Any, Any], Iterable[Hashable]]
"""Which keys a change may concern, of (key, before, after): pure and quick."""


@dataclass(frozen=True, slots=True)
class Trigger(Generic[T]):
    """A change of what is watched, and the keys whose reconcile it may concern."""

    source: Source[T]
    handler: Callable[[Key, T | None, T | None], Iterable[Hashable]]


class Controller(Protocol):
    """Level-based: a key says where to look, never what happened."""

    @property
    def triggers(self) -> tuple[Trigger[Any], ...]: ...

    async def reconcile(self, key: Any) -> Outcome: ...


class BackgroundTask(Protocol):
    """Runs beside a controller for as long as the process does, whether or not it leads: a cache, a connection."""

    async def run(self) -> None:
        """Until it is cancelled; then it has cleaned up."""

    async def settled(self) -> None:
        """Wait until the controller can rely on it; nothing is reconciled before."""


@dataclass(frozen=True, slots=True)
class Toolbox:
    """What a controller is built from."""

    informers: InformerView
    client: Client
    """Writes only while this process leads."""
    recorder: Recorder
    clock: Clock
    registry: CollectorRegistry
    wake: Callable[[Hashable], None]
    """Adds a key to the controller's own queue, while it leads: whoever begins to lead looks at everything."""
    notify: NotificationSender
    """Tells people and systems outside of the cluster."""
    accompany: Callable[[BackgroundTask], None]
    """Has a companion run beside the controller that is built."""
    show: Callable[[str, DebugPage], None]
    """Has a debug page answered at a path, once the caches are complete."""

    def store(self, source: Source[T]) -> Store[T]:
        """What is known of a source; it fills once the manager runs."""
        return self.informers.of(source).store


@dataclass(frozen=True, slots=True)
class ControllerDefinition:
    """A controller before it is built: enough for its RBAC, its lease and the command line."""

    name: str
    access: Access
    build: Callable[[Toolbox], Controller]
    concurrency: int = 4
    reporter: str = ""
    """How its events name it, if not by its name."""


def itself(key: Key, _before: object, _after: object) -> tuple[Key]:
    """Wakes the key of what changed."""
    return (key,)
