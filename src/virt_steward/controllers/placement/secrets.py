"""The Secrets that KubevirtConfigs name: each is watched by its name, and only its kubeconfig is kept."""

from __future__ import annotations

import asyncio
from contextlib import suppress
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


PATIENCE = 5.0
"""Seconds that the start, and each Machine, wait for a Secret to be read. Then the others go on without it."""


@dataclass(frozen=True, slots=True)
class SecretUnknown:
    """It has not been read yet."""


@dataclass(frozen=True, slots=True)
class SecretAbsent:
    """It does not exist."""


@dataclass(frozen=True, slots=True)
class SecretKeyMissing:
    """It has no key kubeconfig, or an empty one."""


@dataclass(frozen=True, slots=True)
class SecretUnreadable:
    """It may exist, but is forbidden or malformed, or the API server refuses to look for it."""

    message: str


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
    """One watch per Secret that a KubevirtConfig names, for as long as one does."""

    def __init__(self, reader: Reader, changed: Callable[[str], None], *, patience: float = PATIENCE) -> None:
        self._reader = reader
        self._changed = changed
        self._patience = patience
        self._named: dict[str, Key] = {}
        self._watches: dict[Key, _SecretWatch] = {}
        self._changes = asyncio.Event()

    def follow(self, config: str, secret: Key | None) -> None:
        """The KubevirtConfig names this Secret from now on; None if it names none, or was deleted."""
        if self._named.get(config) == secret:
            return
        if secret is None:
            del self._named[config]
        else:
            self._named[config] = secret
            if secret not in self._watches:
                self._watches[secret] = _SecretWatch(self._reader, secret, self._changed_secret, self._patience)
        for unnamed in self._watches.keys() - self._named.values():
            self._watches.pop(unnamed).known.set()  # so that nothing waits for it
        self._changes.set()

    def content(self, config: str) -> Content:
        """The content of the Secret that the KubevirtConfig names."""
        secret = self._named.get(config)
        return self._watches[secret].content() if secret else SecretUnknown()

    async def settled(self) -> None:
        """Wait until all Secrets that are named now were read, or have taken too long."""
        for watch in list(self._watches.values()):
            await watch.known.wait()

    async def run(self) -> None:
        """Watch the Secrets that are named; ends only by cancellation."""
        running: dict[_SecretWatch, asyncio.Task[None]] = {}
        async with asyncio.TaskGroup() as watches:
            while True:
                self._changes.clear()
                wanted = set(self._watches.values())
                for watch in running.keys() - wanted:
                    running.pop(watch).cancel()
                for watch in wanted - running.keys():
                    running[watch] = watches.create_task(watch.run())
                await self._changes.wait()

    def _changed_secret(self, secret: Key) -> None:
        for config in [name for name, named in self._named.items() if named == secret]:
            self._changed(config)


class _SecretWatch:
    """The watch of one Secret."""

    def __init__(self, reader: Reader, secret: Key, changed: Callable[[Key], None], patience: float) -> None:
        self._secret = secret
        self._changed = changed
        self._patience = patience
        self.known = asyncio.Event()
        # With a shared store, the informer settles and reports it when it is forbidden to read.
        source = Source(SECRET, projection(_Secret), Selection.one(secret))
        self.informer = Informer(reader, source, shared=Store[_Secret]({}))
        self.informer.tell(self._take)

    def content(self) -> Content:
        informer = self.informer
        if informer.state is InformerState.DENIED:
            command = f"virt-steward rbac --controllers placement --secret-namespaces {self._secret.namespace}"
            elsewhere = (
                "with --namespace, unless it is installed in virt-steward, and with --all-in-one, if it is installed so"
            )
            return SecretUnreadable(f"forbidden (403); apply the output of '{command}' ({elsewhere})")
        if informer.state is InformerState.REFUSED:
            return SecretUnreadable(f"the API server refuses the request: {informer.trouble}")
        if why := informer.store.unreadable(self._secret):
            return SecretUnreadable(f"it is malformed: {why}")
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
            with suppress(TimeoutError):
                async with asyncio.timeout(self._patience):
                    await self.informer.settled()
            self.known.set()
            await self.informer.settled()
            self._changed(self._secret)  # there is no event for a Secret that does not exist

    def _take(self, _key: Key, before: _Secret | None, after: _Secret | None) -> None:
        if before is None or after is None or before.data != after.data:
            self._changed(self._secret)
