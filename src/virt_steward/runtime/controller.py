"""The interface between a controller and the manager: access, triggers and a reconcile."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from virt_steward.kube.watch import Projected
from virt_steward.objects.identity import Key
from virt_steward.runtime.matters import NotificationRules

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from virt_steward.kube.client import Client
    from virt_steward.kube.events import Recorder
    from virt_steward.objects.tls_parameters import TlsParameters
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
"""Maps a change, as (key, before, after), to the keys to reconcile: pure and fast."""


@dataclass(frozen=True, slots=True)
class Trigger(Generic[T]):
    """A watched source, and the handler that maps its changes to keys."""

    source: Source[T]
    handler: Callable[[Key, T | None, T | None], Iterable[Hashable]]


class Controller(Protocol):
    """A level-based controller: a key says what to reconcile, not what happened."""

    @property
    def triggers(self) -> tuple[Trigger[Any], ...]: ...

    async def reconcile(self, key: Any) -> Outcome: ...


class BackgroundTask(Protocol):
    """Runs beside a controller as long as the process, whether or not it leads: a cache, a connection."""

    async def run(self) -> None:
        """Run until cancelled, and clean up."""

    async def settled(self) -> None:
        """Wait until it is ready; nothing is reconciled before."""


@dataclass(frozen=True, slots=True)
class Toolbox:
    """What the manager provides to a controller."""

    informers: InformerView
    client: Client
    """Writes only while this process leads."""
    recorder: Recorder
    clock: Clock
    registry: CollectorRegistry
    wake: Callable[[Hashable], None]
    """Adds a key to the controller's own queue while it leads; a new leader reconciles everything anyway."""
    notify: NotificationSender
    """Sends notifications to people and systems outside of the cluster."""
    accompany: Callable[[BackgroundTask], None]
    """Adds a background task of the controller."""
    use_tls: Callable[[TlsParameters], None]
    """Has what this process serves over TLS follow these versions and ciphers, unless a setting has chosen others."""
    show: Callable[[str, DebugPage], None]
    """Adds a debug page at a path; it is served once the caches are complete."""
    when_leading: Callable[[Callable[[], None]], None]
    """Adds a function that is called whenever this process begins to lead: until then, others may have written."""

    def store(self, source: Source[T]) -> Store[T]:
        """The store of a source, which fills when the manager runs."""
        return self.informers.of(source).store


@dataclass(frozen=True, slots=True)
class ControllerDefinition:
    """How to build a controller, and what RBAC, lease and command line need to know of it."""

    name: str
    access: Access
    build: Callable[[Toolbox], Controller]
    concurrency: int = 4
    reporter: str = ""
    """The reportingController of its events, if not its name."""
    notifications: NotificationRules = field(default_factory=NotificationRules)
    """What of its events concerns people outside of the cluster."""


def itself(key: Key, _before: object, _after: object) -> tuple[Key]:
    """The event handler that reconciles the changed object itself."""
    return (key,)
