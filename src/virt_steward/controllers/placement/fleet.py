"""The clusters behind KubevirtConfigs: one shared client each, with a timeout per request and a backoff on failures."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Protocol, TypeVar

import msgspec
import structlog

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
from virt_steward.kube.answers import KIB, MIB, AnswerLimits, decoded
from virt_steward.kube.client import Caller, Reader
from virt_steward.kube.connection import Connection, unobserved
from virt_steward.kube.discovery import Discovery
from virt_steward.kube.errors import (
    BadConfig,
    Forbidden,
    InvalidAnswer,
    KubeError,
    Refused,
    Unauthorized,
    Unavailable,
    one_line,
)
from virt_steward.kube.kubeconfig import load_from_bytes

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from virt_steward.apis.kubevirtconfig import KubevirtConfigSpec
    from virt_steward.controllers.placement.options import FleetTimeouts
    from virt_steward.controllers.placement.secrets import Secrets
    from virt_steward.kube.kubeconfig import ClusterConfig
    from virt_steward.runtime.clock import Clock

log = structlog.get_logger()

T = TypeVar("T")

NOWHERE = 0
"""The edition of a cluster that cannot be asked."""
LONGEST_KUBECONFIG = 128 * 1024
"""Bytes: parsing more takes seconds, during which the whole process stands still."""
MEMBER_LIMITS = AnswerLimits(body=6 * MIB, error=64 * KIB, items=20_000, pages=200, line=MIB, pause=1.0, chunk=32 * KIB)
"""Others run the servers of members. A page of 500 VMs has 6 MiB if each has 12 KiB of metadata; usual are 8 KiB."""
LARGE_AT_ONCE = 4
"""So many large answers are read at once, one of each cluster: together they must fit into the memory of the pod."""
LONGEST_VERSION_ANSWER = 64 * KIB
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


def connections_to_members(agent: str) -> Callable[[ClusterConfig], Connection]:
    """Makes connections to member clusters, with limits for what their servers send."""
    large = asyncio.Semaphore(LARGE_AT_ONCE)
    return partial(Connection, user_agent=agent, observe=unobserved, limits=MEMBER_LIMITS, large=large)


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
            answer = await self._requested(client, request)
        except Exception as error:  # noqa: BLE001 - whatever a cluster sends is the problem of that cluster alone
            # Without the text of the error: it may quote the answer, or a header with our token.
            log.warning("request to cluster failed unexpectedly", cluster=client.config, error=type(error).__name__)
            return self._failed(client, Unreachable(f"{client}: {INVALID_ANSWER}", PlacementReason.MISBEHAVES))
        if not isinstance(answer, Unreachable):
            client.backoff = client.backoff.ended()
        return answer

    async def _requested(self, client: _ClusterClient, request: Callable[[Reader], Awaitable[T]]) -> T | Unreachable:
        try:
            async with asyncio.timeout(self._limits.timeout):
                return await request(client.reader)
        except TimeoutError:
            return self._failed(client, Unreachable(f"{client}: {timed_out(self._limits.timeout)}"))
        except Unauthorized:
            source = client.reader.connection.cluster.credentials.explain()
            return self._failed(client, ClusterRejected(f"{client}: unauthorized (401): {source}"))
        except Refused as error:  # it answers, but refuses this request
            client.backoff = client.backoff.ended()
            reason = PlacementReason.FORBIDDEN if isinstance(error, Forbidden) else PlacementReason.REFUSED
            return Unreachable(f"{client}: {describe_error(error)}", reason)
        except KubeError as error:
            is_invalid = isinstance(error, InvalidAnswer)
            reason = PlacementReason.MISBEHAVES if is_invalid else PlacementReason.CLUSTERS_SILENT
            pause = error.retry_after if isinstance(error, Unavailable) else None
            return self._failed(client, Unreachable(f"{client}: {describe_error(error)}", reason), pause or 0.0)

    def _failed(self, client: _ClusterClient, failure: Unreachable, pause: float = 0.0) -> Unreachable:
        """Begin a backoff, of at least the pause that the server asks for, as far as that is not too long."""
        now = self._clock.now()
        backoff, longest = client.backoff, self._limits.longest_retry
        if now >= backoff.until + longest and backoff.failure is None:
            backoff = NO_BACKOFF  # it has behaved for long enough
        if now >= backoff.until:  # else a failure of the same time is counted already
            delay = min(backoff.delay * 2 or self._limits.first_retry, longest)
            client.backoff = _Backoff(failure, delay, now + max(delay, min(pause, longest)))
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
        except Exception as error:  # noqa: BLE001 - what is in a Secret must not stop the searches of other clusters
            log.warning("kubeconfig unreadable", cluster=config, error=type(error).__name__)
            problem = f"{describe_secret(config, spec)} is not a valid kubeconfig: replace it"
            return UnusableCluster(PlacementReason.BAD_KUBECONFIG, problem)
        connection = self._connect(cluster)
        # A request ends with the question: a server that asks for a longer pause is not waited for.
        reader = Reader(connection, Discovery(connection), Caller(timeout=self._limits.timeout))
        return _ClusterClient(config, next(self._editions), reader)

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

    def ended(self) -> _Backoff:
        """After an answer, the next failure counts as the first.

        Not so for a cluster that misbehaves: it may answer some requests well, and others with megabytes. Its delay
        grows with each of them until it has behaved for a while.
        """
        is_misbehaving = self.failure is None or self.failure.reason is PlacementReason.MISBEHAVES
        return replace(self, failure=None) if is_misbehaving else NO_BACKOFF


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
        answer = await reader.raw("/version", longest=LONGEST_VERSION_ANSWER)
    except Forbidden:  # it answers, but its version may not be read
        return ClusterReached("")
    found: _ClusterVersion = decoded(answer, _ClusterVersion, "get /version")
    return ClusterReached(one_line(found.git_version)[:LONGEST_VERSION])
