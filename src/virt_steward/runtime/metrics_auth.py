"""Who may read the metrics: everybody, who has a token with the right to, or who has one of some client certificates.

A token is reviewed by the API server as controller-runtime does it: a TokenReview says whose it is, and a
SubjectAccessReview whether that user may `get` the non-resource URL `/metrics`. Answers are remembered for a short
time. New tokens are reviewed at a limited rate, so that strangers cannot have us flood the API server.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
import structlog

from virt_steward.kube.client import Selection
from virt_steward.kube.errors import KubeError
from virt_steward.kube.watch import projection
from virt_steward.objects.corekinds import CONFIG_MAP
from virt_steward.objects.identity import Key, Kind
from virt_steward.objects.meta import Meta
from virt_steward.runtime.access import WATCH, Grant
from virt_steward.runtime.informer import Source
from virt_steward.runtime.throttle import Rate, TokenBucket, TokenTaken

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from virt_steward.kube.client import Client
    from virt_steward.runtime.clock import Clock
    from virt_steward.runtime.informers import Informers
    from virt_steward.runtime.serving_tls import ServingTls

log = structlog.get_logger()

PATH = "/metrics"
ACCEPTED_FOR, REFUSED_FOR = 60.0, 10.0
"""Seconds for which a review is remembered."""
MOST_TOKENS = 200
"""Reviews that are remembered."""
LONGEST_TOKEN = 8192
NEW_TOKENS = Rate(capacity=20, per_second=2)
"""Reviews of tokens that were not accepted before. A token that was is reviewed again at any rate."""
MOST_REVIEWS = 4
"""Reviews at a time."""
OPENSHIFT_PROMETHEUS = "system:serviceaccount:openshift-monitoring:prometheus-k8s"
"""The name in the client certificate of OpenShift's Prometheus."""
CLIENT_AUTHORITY = Key("kube-system", "extension-apiserver-authentication")
CLIENT_AUTHORITY_KEY = "client-ca-file"
"""The ConfigMap with the authority of client certificates, and its key."""

TOKEN_REVIEW = Kind("authentication.k8s.io", "TokenReview", "tokenreviews")
ACCESS_REVIEW = Kind("authorization.k8s.io", "SubjectAccessReview", "subjectaccessreviews")


class MetricsAuth(StrEnum):
    """How those who read metrics prove who they are."""

    NONE = "none"
    TOKEN = "token"  # noqa: S105 - no secret
    CLIENT_CERTIFICATE = "client-certificate"


GRANTS: Mapping[str, tuple[Grant, ...]] = {
    f"metrics-{MetricsAuth.TOKEN}": (
        Grant(TOKEN_REVIEW, ("create",), "to know who reads the metrics"),
        Grant(ACCESS_REVIEW, ("create",), "to know whether they may"),
    ),
    f"metrics-{MetricsAuth.CLIENT_CERTIFICATE}": (
        Grant(
            CONFIG_MAP,
            WATCH,
            "to know the authority of client certificates",
            where=CLIENT_AUTHORITY.namespace,
            names=(CLIENT_AUTHORITY.name,),
        ),
    ),
}
"""The rights for each way, as optional grants of any controller."""


def optional_grants(auth: MetricsAuth) -> tuple[str, ...]:
    """The names of the optional grants that this way needs."""
    return tuple(name for name in GRANTS if name == f"metrics-{auth}")


@dataclass(frozen=True, slots=True)
class ScrapeRequest:
    """What a request for metrics says of its sender."""

    authorization: str
    """The header; empty if there is none."""
    client_name: str
    """The common name of the verified client certificate; empty if there is none."""


@dataclass(frozen=True, slots=True)
class ScrapeRefused:
    """The answer to a request without metrics."""

    status: int
    text: str


class ScrapeAuthorizer(Protocol):
    """Decides who may read the metrics."""

    async def refusal(self, request: ScrapeRequest) -> ScrapeRefused | None:
        """None: the sender may."""


class AnyoneMayScrape:
    """Accepts everybody."""

    async def refusal(self, _: ScrapeRequest) -> ScrapeRefused | None:
        return None


class AuthorityConfigMap(msgspec.Struct, frozen=True):
    """The ConfigMap with the authority of client certificates."""

    metadata: Meta
    data: dict[str, str] = {}


AUTHORITIES = Source(CONFIG_MAP, projection(AuthorityConfigMap), Selection.one(CLIENT_AUTHORITY), may_be_denied=True)


def follow_client_authority(informers: Informers, tls: ServingTls) -> None:
    """Have the server trust the authority that the cluster has for client certificates."""

    def handle(_key: Key, _before: AuthorityConfigMap | None, after: AuthorityConfigMap | None) -> None:
        pem = after.data.get(CLIENT_AUTHORITY_KEY) if after else None
        if not pem:
            log.warning("metrics not served", reason=f"ConfigMap {CLIENT_AUTHORITY} has no {CLIENT_AUTHORITY_KEY}")
        tls.use_client_authority(pem.encode() if pem else None)

    informers.of(AUTHORITIES).tell(handle)


class ClientNames:
    """Accepts verified client certificates with one of these common names."""

    def __init__(self, names: Collection[str]) -> None:
        self._names = frozenset(names)

    async def refusal(self, request: ScrapeRequest) -> ScrapeRefused | None:
        if request.client_name and request.client_name in self._names:
            return None
        return ScrapeRefused(403, "forbidden: the name in the client certificate is not among --metrics-client-names\n")


class TokenReviews:
    """Accepts bearer tokens of users who may get /metrics."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._known: OrderedDict[bytes, tuple[float, ScrapeRefused | None]] = OrderedDict()  # by digest: until, answer
        self._new_tokens = TokenBucket(NEW_TOKENS, clock.now())
        self._reviewing = asyncio.Semaphore(MOST_REVIEWS)

    async def refusal(self, request: ScrapeRequest) -> ScrapeRefused | None:
        scheme, _, token = request.authorization.partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token or len(token) > LONGEST_TOKEN:
            return ScrapeRefused(401, "unauthorized: send a bearer token\n")
        digest = hashlib.blake2b(token.encode(errors="surrogateescape"), digest_size=32).digest()
        until, answer = self._known.get(digest, (0.0, _UNKNOWN))
        if self._clock.now() < until:
            return answer
        if answer is not None and not isinstance(self._new_tokens.take(self._clock.now()), TokenTaken):
            return ScrapeRefused(429, "too many requests with new tokens: try again later\n")
        return await self._review(digest, token)

    async def _review(self, digest: bytes, token: str) -> ScrapeRefused | None:
        try:
            async with self._reviewing:
                answer = await self._ask(token)
        except KubeError as error:
            log.warning("token not reviewed", error=str(error))
            return ScrapeRefused(503, "the API server did not review the token: try again later\n")
        self._known[digest] = (self._clock.now() + (REFUSED_FOR if answer else ACCEPTED_FOR), answer)
        self._known.move_to_end(digest)
        while len(self._known) > MOST_TOKENS:
            self._forget_one()
        return answer

    def _forget_one(self) -> None:
        """The oldest that was refused, or else the oldest: strangers must not push out who was accepted."""
        refused = next((digest for digest, (_, answer) in self._known.items() if answer), None)
        del self._known[refused or next(iter(self._known))]

    async def _ask(self, token: str) -> ScrapeRefused | None:
        status = (await self._create(TOKEN_REVIEW, {"token": token})).get("status") or {}
        if not status.get("authenticated"):
            return ScrapeRefused(401, "unauthorized: the API server does not accept this token\n")
        user = status.get("user") or {}
        wanted = {"user": user.get("username"), "nonResourceAttributes": {"path": PATH, "verb": "get"}}
        more = {name: user[name] for name in ("uid", "groups", "extra") if user.get(name)}
        status = (await self._create(ACCESS_REVIEW, {**wanted, **more})).get("status") or {}
        if status.get("allowed") is True:
            return None
        return ScrapeRefused(403, f"forbidden: a role must allow get on the nonResourceURL {PATH}\n")

    async def _create(self, kind: Kind, spec: dict[str, Any]) -> dict[str, Any]:
        review = {"apiVersion": f"{kind.group}/v1", "kind": kind.name, "metadata": {"name": ""}, "spec": spec}
        return await self._client.create(review)


_UNKNOWN = ScrapeRefused(401, "")
"""Stands for a token that was not reviewed yet."""
