"""The clusters behind KubevirtConfigs: who can be asked, how long we wait, and whom we leave in peace."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Protocol, TypeVar

import msgspec

from virt_steward.controllers.placement.messages import in_words, missing, owner, secret_of
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
    from virt_steward.controllers.placement.secrets import Secrets
    from virt_steward.kube.connection import Connection
    from virt_steward.kube.kubeconfig import ClusterConfig
    from virt_steward.runtime.clock import Clock

T = TypeVar("T")

NOWHERE = 0
"""The edition of a cluster that there is no way to."""
LONGEST_KUBECONFIG = 128 * 1024
"""Bytes: what is longer takes seconds to read, in which nothing else is done."""
LONGEST_ANSWER = 32 * 1024 * 1024
"""Bytes of one page: nobody else's server may fill our memory."""
LONGEST_VERSION = 64
"""Characters; it is a stranger's word, and ends in a status."""


@dataclass(frozen=True, slots=True)
class FleetTimeouts:
    """How patient we are with one cluster, in seconds."""

    timeout: float = 5.0
    """For one question."""
    first_retry: float = 1.0
    """So long a cluster is not asked again after a failure; each further one doubles it."""
    longest_retry: float = 60.0


@dataclass(frozen=True, slots=True)
class ClusterRejected(Unreachable):
    """It answered, but does not accept our credentials."""

    reason: PlacementReason = PlacementReason.UNAUTHORIZED


@dataclass(frozen=True, slots=True)
class ClusterReached:
    """It answered."""

    version: str


class FleetObserver(Protocol):
    """Is told how long each question took."""

    def __call__(self, config: str, seconds: float, *, answered: bool) -> None: ...


class Fleet:
    """Asks clusters. Clients are made on first use and shared, and made anew when their kubeconfig changes."""

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
        self._ways: dict[str, _Way] = {}
        self._editions = count(NOWHERE + 1)
        self._farewells: set[asyncio.Task[None]] = set()

    def follow(self, config: str, spec: KubevirtConfigSpec | None) -> None:
        """The config as it is from now on; None if it is gone."""
        before = self._specs.pop(config, None)
        if spec:
            self._specs[config] = spec
        if secret_of(before) != secret_of(spec):
            self._leave(config)
            self._secrets.follow(config, secret_of(spec))

    async def run(self) -> None:
        """Keep the kubeconfigs up to date; when it is cancelled, all connections are closed."""
        try:
            await self._secrets.run()
        finally:
            self._specs.clear()  # whoever still asks opens no other
            for config in list(self._ways):
                self._leave(config)
            await asyncio.gather(*self._farewells)

    async def settled(self) -> None:
        """Wait until the Secrets of all configs were looked at: unknown is not absent."""
        await self._secrets.settled()

    def usable(self, config: str) -> UnusableCluster | None:
        """Why the cluster cannot be asked at all; None if it can, whether or not it would answer."""
        link = self._link(config)
        return link if isinstance(link, UnusableCluster) else None

    def edition(self, config: str) -> int:
        """Another number whenever the name may stand for another cluster, or another user of it."""
        link = self._link(config)
        return NOWHERE if isinstance(link, UnusableCluster) else link.edition

    def silence(self, config: str) -> Unreachable | None:
        """Why the last question failed; None if it did not, or nobody has asked."""
        link = self._link(config)
        return None if isinstance(link, UnusableCluster) else link.pause.since

    def retry_in(self, config: str) -> float:
        """Seconds until a cluster that failed is asked again; zero if it may be asked now."""
        link = self._link(config)
        return 0.0 if isinstance(link, UnusableCluster) else max(link.pause.until - self._clock.now(), 0.0)

    async def probe(self, config: str) -> ClusterReached | Unreachable | UnusableCluster:
        """Whether the cluster answers, and as what."""
        if unusable := self.usable(config):
            return unusable
        return await self.ask(config, _version)

    async def ask(self, config: str, question: Callable[[Reader], Awaitable[T]]) -> T | Unreachable:
        """The answer, or why there is none. A cluster that failed is left in peace until its next try."""
        link = self._link(config)
        if isinstance(link, UnusableCluster):
            return Unreachable(link.because, link.reason)
        began = self._clock.now()
        if link.pause.since and began < link.pause.until:
            return link.pause.since
        answer = await self._answer(link, question)
        if not link.left:  # else nobody wants to hear of it
            self._observe(config, self._clock.now() - began, answered=not isinstance(answer, Unreachable))
        return answer

    async def _answer(self, link: _Link, question: Callable[[Reader], Awaitable[T]]) -> T | Unreachable:
        try:
            async with asyncio.timeout(self._limits.timeout):
                answer = await question(link.reader)
        except TimeoutError:
            return self._failed(link, Unreachable(f"{link} does not answer within {self._limits.timeout:g} s"))
        except Unauthorized:
            shown = link.reader.connection.cluster.credentials.explain()
            return self._failed(link, ClusterRejected(f"{link} does not accept our credentials: {shown}"))
        except Refused as error:  # it answers, though not this question
            link.pause = NONE
            reason = PlacementReason.FORBIDDEN if isinstance(error, Forbidden) else PlacementReason.REFUSED
            return Unreachable(f"{link} {in_words(error)}", reason)
        except KubeError as error:
            return self._failed(link, Unreachable(f"{link} {in_words(error)}"))
        except (msgspec.MsgspecError, RecursionError):
            return self._failed(link, Unreachable(f"{link} gives an answer that makes no sense"))
        link.pause = NONE
        return answer

    def _failed(self, link: _Link, silence: Unreachable) -> Unreachable:
        now = self._clock.now()
        if now >= link.pause.until:  # else it was asked before a failure that is counted already
            delay = min(link.pause.delay * 2 or self._limits.first_retry, self._limits.longest_retry)
            link.pause = _Pause(silence, delay, now + delay)
        return silence

    def _link(self, config: str) -> _Link | UnusableCluster:
        """The way to the cluster, as its config and Secret describe it now."""
        spec = self._specs.get(config)
        if spec is None:
            return UnusableCluster(PlacementReason.CONFIG_NOT_FOUND, f"there is no KubevirtConfig {config}")
        content = self._secrets.content(config)
        way = self._ways.get(config)
        if way and way.content == content:
            return way.leads_to
        self._leave(config)
        if not isinstance(content, SecretPresent):
            return missing(config, spec, content)
        made = self._made(config, spec, content.kubeconfig)
        self._ways[config] = _Way(content, made)
        return made

    def _made(self, config: str, spec: KubevirtConfigSpec, kubeconfig: bytes) -> _Link | UnusableCluster:
        if len(kubeconfig) > LONGEST_KUBECONFIG:
            problem = f"is longer than {LONGEST_KUBECONFIG // 1024} KiB, which no kubeconfig is: replace it"
            return UnusableCluster(PlacementReason.BAD_KUBECONFIG, f"{owner(config, spec)} {problem}")
        try:
            cluster = load_from_bytes(kubeconfig, source=owner(config, spec), trusted=False, env={})
        except BadConfig as error:
            return UnusableCluster(PlacementReason.BAD_KUBECONFIG, str(error))
        connection = self._connect(cluster)
        return _Link(config, next(self._editions), Reader(connection, Discovery(connection)))

    def _leave(self, config: str) -> None:
        way = self._ways.pop(config, None)
        if way and isinstance(way.leads_to, _Link):
            way.leads_to.left = True
            farewell = asyncio.create_task(way.leads_to.reader.connection.close())
            self._farewells.add(farewell)
            farewell.add_done_callback(self._farewells.discard)


@dataclass(frozen=True, slots=True)
class _Pause:
    """In which a cluster that failed is not asked."""

    since: Unreachable | None = None
    delay: float = 0.0
    until: float = 0.0


NONE = _Pause()


@dataclass(slots=True)
class _Link:
    """A client of one cluster, and how it went of late."""

    config: str
    edition: int
    reader: Reader
    pause: _Pause = NONE
    left: bool = False
    """No longer the way to its cluster."""

    def __str__(self) -> str:
        return f"cluster {self.config}"


@dataclass(frozen=True, slots=True)
class _Way:
    """What the content of a Secret leads to."""

    content: SecretPresent
    leads_to: _Link | UnusableCluster


class _Version(msgspec.Struct, rename={"git_version": "gitVersion"}):
    git_version: str


async def _version(reader: Reader) -> ClusterReached:
    try:
        told = msgspec.json.decode(await reader.raw("/version"), type=_Version)
    except Forbidden:  # it answers, and keeps its version to itself
        return ClusterReached("")
    return ClusterReached(one_line(told.git_version)[:LONGEST_VERSION])
