"""The clusters behind KubevirtConfigs: one shared client each, with a timeout per request and a backoff on failures."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Protocol, TypeVar

import msgspec

from virt_steward.controllers.placement.messages import (
    INVALID_ANSWER,
    describe_error,
    describe_secret,
    secret_of,
    timed_out,
    without_kubeconfig,
)
from virt_steward.controllers.placement.observation import Unreachable, UnusableCluster
from virt_steward.controllers.placement.secrets import SecretPresent
from virt_steward.controllers.placement.verdicts import PlacementReason
from virt_steward.kube.client import Reader
from virt_steward.kube.discovery import Discovery
from virt_steward.kube.errors import BadConfig, Forbidden, KubeError, Refused, Unauthorized, one_line
from virt_steward.kube.kubeconfig import load_from_bytes

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from virt_steward.apis.kubevirtconfig import KubevirtConfigSpec
    from virt_steward.controllers.placement.options import FleetTimeouts
    from virt_steward.controllers.placement.secrets import Secrets
    from virt_steward.kube.connection import Connection
    from virt_steward.kube.kubeconfig import ClusterConfig
    from virt_steward.runtime.clock import Clock

T = TypeVar("T")

NOWHERE = 0
"""The edition of a cluster that cannot be asked."""
LONGEST_KUBECONFIG = 128 * 1024
"""Bytes: parsing more takes seconds, during which the whole process stands still."""
LONGEST_ANSWER = 32 * 1024 * 1024
"""Bytes of one page: the server of another cluster must not fill our memory."""
LONGEST_VERSION = 64
"""Characters: another server chooses the text, and it ends in a status."""


@dataclass(frozen=True, slots=True)
class ClusterRejected(Unreachable):
    """It answered, but does not accept the credentials (401)."""

    reason: PlacementReason = PlacementReason.UNAUTHORIZED


@dataclass(frozen=True, slots=True)
class ClusterReached:
    """It answered."""

    version: str


class FleetObserver(Protocol):
    """Called after each request with the seconds that it took."""

    def __call__(self, config: str, seconds: float, *, answered: bool) -> None: ...


class Fleet:
    """Sends requests to clusters. A client is made on first use, shared, and replaced when its kubeconfig changes."""

    def __init__(
        self,
        secrets: Secrets,
        *,
        limits: FleetTimeouts,
        clock: Clock,
        connect: Callable[[ClusterConfig], Connection],
        observe: FleetObserver,
    ) -> None:
        self._secrets = secrets
        self._limits = limits
        self._clock = clock
        self._connect = connect
        self._observe = observe
        self._specs: dict[str, KubevirtConfigSpec] = {}
        self._clients: dict[str, _CachedClient] = {}
        self._editions = count(NOWHERE + 1)
        self._closing: set[asyncio.Task[None]] = set()

    def follow(self, config: str, spec: KubevirtConfigSpec | None) -> None:
        """Take the current spec of a KubevirtConfig; None if it was deleted."""
        before = self._specs.pop(config, None)
        if spec:
            self._specs[config] = spec
        if secret_of(before) != secret_of(spec):
            self._close(config)
            self._secrets.follow(config, secret_of(spec))

    async def run(self) -> None:
        """Keep the kubeconfigs up to date until cancelled, and then close all connections."""
        try:
            await self._secrets.run()
        finally:
            self._specs.clear()  # so that a late request opens no other connection
            for config in list(self._clients):
                self._close(config)
            await asyncio.gather(*self._closing)

    async def settled(self) -> None:
        """Wait until the Secrets of all KubevirtConfigs were read: unknown is not absent."""
        await self._secrets.settled()

    def why_unusable(self, config: str) -> UnusableCluster | None:
        """Why the cluster cannot be asked at all; None if it can, whether or not it would answer."""
        client = self._client(config)
        return client if isinstance(client, UnusableCluster) else None

    def edition(self, config: str) -> int:
        """A number that changes whenever the name may mean another cluster, or another user of it."""
        client = self._client(config)
        return NOWHERE if isinstance(client, UnusableCluster) else client.edition

    def last_failure(self, config: str) -> Unreachable | None:
        """Why the last request failed; None if it did not, or there was none."""
        client = self._client(config)
        return None if isinstance(client, UnusableCluster) else client.backoff.failure

    def retry_in(self, config: str) -> float:
        """Seconds until a cluster that failed is asked again; zero if it may be asked now."""
        client = self._client(config)
        return 0.0 if isinstance(client, UnusableCluster) else max(client.backoff.until - self._clock.now(), 0.0)

    async def probe(self, config: str) -> ClusterReached | Unreachable | UnusableCluster:
        """Whether the cluster answers, and as what."""
        if unusable := self.why_unusable(config):
            return unusable
        return await self.ask(config, _version)

    async def ask(self, config: str, request: Callable[[Reader], Awaitable[T]]) -> T | Unreachable:
        """Get the answer, or why there is none. After a failure, the cluster is not asked until its backoff is over."""
        client = self._client(config)
        if isinstance(client, UnusableCluster):
            return Unreachable(client.message, client.reason)
        began = self._clock.now()
        if client.backoff.failure and began < client.backoff.until:
            return client.backoff.failure
        answer = await self._answer(client, request)
        if not client.is_closed:  # else its config was deleted or changed meanwhile
            self._observe(config, self._clock.now() - began, answered=not isinstance(answer, Unreachable))
        return answer

    async def _answer(self, client: _ClusterClient, request: Callable[[Reader], Awaitable[T]]) -> T | Unreachable:
        try:
            async with asyncio.timeout(self._limits.timeout):
                answer = await request(client.reader)
        except TimeoutError:
            return self._failed(client, Unreachable(f"{client}: {timed_out(self._limits.timeout)}"))
        except Unauthorized:
            source = client.reader.connection.cluster.credentials.explain()
            return self._failed(client, ClusterRejected(f"{client}: unauthorized (401): {source}"))
        except Refused as error:  # it answers, but refuses this request
            client.backoff = NO_BACKOFF
            reason = PlacementReason.FORBIDDEN if isinstance(error, Forbidden) else PlacementReason.REFUSED
            return Unreachable(f"{client}: {describe_error(error)}", reason)
        except KubeError as error:
            return self._failed(client, Unreachable(f"{client}: {describe_error(error)}"))
        except (msgspec.MsgspecError, RecursionError):
            return self._failed(client, Unreachable(f"{client}: {INVALID_ANSWER}"))
        client.backoff = NO_BACKOFF
        return answer

    def _failed(self, client: _ClusterClient, failure: Unreachable) -> Unreachable:
        now = self._clock.now()
        if now >= client.backoff.until:  # else a failure of the same time is counted already
            delay = min(client.backoff.delay * 2 or self._limits.first_retry, self._limits.longest_retry)
            client.backoff = _Backoff(failure, delay, now + delay)
        return failure

    def _client(self, config: str) -> _ClusterClient | UnusableCluster:
        """The client for the cluster, as its KubevirtConfig and Secret are now."""
        spec = self._specs.get(config)
        if spec is None:
            return UnusableCluster(PlacementReason.CONFIG_NOT_FOUND, f"KubevirtConfig {config} not found")
        content = self._secrets.content(config)
        cached = self._clients.get(config)
        if cached and cached.content == content:
            return cached.client
        self._close(config)
        if not isinstance(content, SecretPresent):
            return without_kubeconfig(config, spec, content)
        made = self._connect_to(config, spec, content.kubeconfig)
        self._clients[config] = _CachedClient(content, made)
        return made

    def _connect_to(self, config: str, spec: KubevirtConfigSpec, kubeconfig: bytes) -> _ClusterClient | UnusableCluster:
        if len(kubeconfig) > LONGEST_KUBECONFIG:
            problem = f"is longer than {LONGEST_KUBECONFIG // 1024} KiB, which is too long for a kubeconfig: replace it"
            return UnusableCluster(PlacementReason.BAD_KUBECONFIG, f"{describe_secret(config, spec)} {problem}")
        try:
            cluster = load_from_bytes(kubeconfig, source=describe_secret(config, spec), trusted=False, env={})
        except BadConfig as error:
            return UnusableCluster(PlacementReason.BAD_KUBECONFIG, str(error))
        connection = self._connect(cluster)
        return _ClusterClient(config, next(self._editions), Reader(connection, Discovery(connection)))

    def _close(self, config: str) -> None:
        cached = self._clients.pop(config, None)
        if cached and isinstance(cached.client, _ClusterClient):
            cached.client.is_closed = True
            closing = asyncio.create_task(cached.client.reader.connection.close())
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)


@dataclass(frozen=True, slots=True)
class _Backoff:
    """The time in which a cluster that failed is not asked."""

    failure: Unreachable | None = None
    delay: float = 0.0
    until: float = 0.0


NO_BACKOFF = _Backoff()


@dataclass(slots=True)
class _ClusterClient:
    """A client of one cluster, and its backoff."""

    config: str
    edition: int
    reader: Reader
    backoff: _Backoff = NO_BACKOFF
    is_closed: bool = False

    def __str__(self) -> str:
        return f"cluster {self.config}"


@dataclass(frozen=True, slots=True)
class _CachedClient:
    """The client for the content of a Secret, or why there is none."""

    content: SecretPresent
    client: _ClusterClient | UnusableCluster


class _ClusterVersion(msgspec.Struct, rename={"git_version": "gitVersion"}):
    git_version: str


async def _version(reader: Reader) -> ClusterReached:
    try:
        found = msgspec.json.decode(await reader.raw("/version"), type=_ClusterVersion)
    except Forbidden:  # it answers, but its version may not be read
        return ClusterReached("")
    return ClusterReached(one_line(found.git_version)[:LONGEST_VERSION])
