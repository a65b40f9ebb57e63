"""The Secrets that KubevirtConfigs name: each is watched by its name, and nothing of it is kept but its kubeconfig."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from virt_steward.kube.client import Selection
from virt_steward.kube.watch import projection
from virt_steward.objects.meta import Meta
from virt_steward.runtime.access import SECRET
from virt_steward.runtime.informer import Informer, InformerState, Source
from virt_steward.runtime.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable

    from virt_steward.kube.client import Reader
    from virt_steward.objects.identity import Key


@dataclass(frozen=True, slots=True)
class SecretUnknown:
    """Nobody has looked yet."""


@dataclass(frozen=True, slots=True)
class SecretAbsent:
    """There is no such Secret."""


@dataclass(frozen=True, slots=True)
class SecretKeyMissing:
    """It has no kubeconfig, or an empty one."""


@dataclass(frozen=True, slots=True)
class SecretUnreadable:
    """It may be there; we may not look at it, or cannot make sense of it."""

    because: str


@dataclass(frozen=True, slots=True)
class SecretPresent:
    kubeconfig: bytes = field(repr=False)


Content = SecretUnknown | SecretAbsent | SecretKeyMissing | SecretUnreadable | SecretPresent


@dataclass(frozen=True, slots=True)
class _Data:
    kubeconfig: bytes | None = field(default=None, repr=False)


class _Secret(msgspec.Struct, frozen=True):
    metadata: Meta
    data: _Data = _Data()


class Secrets:
    """Watches begin and end as configs come and go; configs that name the same Secret share one."""

    def __init__(self, reader: Reader, changed: Callable[[str], None]) -> None:
        self._reader = reader
        self._changed = changed
        self._named: dict[str, Key] = {}
        self._watches: dict[Key, _SecretWatch] = {}
        self._news = asyncio.Event()

    def follow(self, config: str, secret: Key | None) -> None:
        """The config names this Secret from now on; None if it names none, or is gone."""
        if self._named.get(config) == secret:
            return
        if secret is None:
            del self._named[config]
        else:
            self._named[config] = secret
            if secret not in self._watches:
                self._watches[secret] = _SecretWatch(self._reader, secret, self._tell)
        for unnamed in self._watches.keys() - self._named.values():
            self._watches.pop(unnamed).known.set()  # nobody need wait for it
        self._news.set()

    def content(self, config: str) -> Content:
        """What the Secret holds that the config names."""
        secret = self._named.get(config)
        return self._watches[secret].content() if secret else SecretUnknown()

    async def settled(self) -> None:
        """Wait until nothing is unknown of what is named now."""
        for watch in list(self._watches.values()):
            await watch.known.wait()

    async def run(self) -> None:
        """Watch whatever is named; ends only by cancellation."""
        running: dict[_SecretWatch, asyncio.Task[None]] = {}
        async with asyncio.TaskGroup() as watches:
            while True:
                self._news.clear()
                wanted = set(self._watches.values())
                for watch in running.keys() - wanted:
                    running.pop(watch).cancel()
                for watch in wanted - running.keys():
                    running[watch] = watches.create_task(watch.run())
                await self._news.wait()

    def _tell(self, secret: Key) -> None:
        for config in [name for name, named in self._named.items() if named == secret]:
            self._changed(config)


class _SecretWatch:
    """One Secret, followed by a watch that sees no other."""

    def __init__(self, reader: Reader, secret: Key, changed: Callable[[Key], None]) -> None:
        self._secret = secret
        self._changed = changed
        self.known = asyncio.Event()
        # A store that could be shared makes the informer settle, and say so, where it is denied.
        source = Source(SECRET, projection(_Secret), Selection.one(secret))
        self.informer = Informer(reader, source, shared=Store[_Secret]({}))
        self.informer.tell(self._take)

    def content(self) -> Content:
        informer = self.informer
        if informer.state is InformerState.DENIED:
            command = f"virt-steward rbac --controllers placement --secret-namespaces {self._secret.namespace}"
            return SecretUnreadable(f"we may not read it; apply what '{command}' prints")
        if why := informer.store.unreadable(self._secret):
            return SecretUnreadable(f"it makes no sense: {why}")
        match informer.store.get(self._secret):
            case None:
                return SecretUnknown() if informer.state is InformerState.STARTING else SecretAbsent()
            case _Secret(data=_Data(kubeconfig=None | b"")):
                return SecretKeyMissing()
            case known:
                return SecretPresent(known.data.kubeconfig or b"")

    async def run(self) -> None:
        async with asyncio.TaskGroup() as following:
            following.create_task(self.informer.run())
            await self.informer.settled()
            self.known.set()
            self._changed(self._secret)  # no event says that there is none

    def _take(self, _key: Key, before: _Secret | None, after: _Secret | None) -> None:
        if before is None or after is None or before.data != after.data:
            self._changed(self._secret)
