"""What can go wrong between us and an API server, as one tree.

KubeError
├── BadConfig              a kubeconfig, a file or a credential is unusable; nothing was sent
├── NotLeading             the lease is lost or about to be; nothing was sent
├── Unavailable            no answer that counts: try again later
│   ├── Unreachable        refused, reset, no such host
│   │   └── Untrusted      the server's certificate does not match what we trust
│   ├── TimedOut
│   ├── TooManyRequests    429
│   └── ServerError        5xx
└── Refused                the server understood and said no
    ├── BadRequest         400
    ├── Unauthorized       401
    ├── Forbidden          403
    ├── NotFound           404, the object
    │   └── NotServed      404, the kind: its CRD is not (yet) there
    ├── Conflict           409, a precondition or a concurrent write
    │   ├── AlreadyExists
    │   └── FieldConflict  another manager owns what an apply would set
    ├── Expired            410, a resourceVersion or a page token is too old
    └── Invalid            422, by schema or admission

A failed read is never "absent": only NotFound means that an object is not there.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from virt_steward.objects.errors import UserError


class KubeError(UserError):
    """Any failure to get an answer from an API server."""


class BadConfig(KubeError):
    """A kubeconfig, a file or a credential is unusable; nothing was sent."""


def unusable(where: str, problem: str) -> BadConfig:
    return BadConfig(one_line(f"{where}: {problem}"))


def one_line(text: str) -> str:
    """A message for people, whatever the names and outputs quoted in it contain."""
    return "".join(char if char.isprintable() else "?" for char in " ".join(text.split()))


class NotLeading(KubeError):
    """The lease is lost, or would be before the write could end; nothing was sent."""


class Unavailable(KubeError):
    """No answer that counts: the same request may succeed later."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Unreachable(Unavailable):
    """Refused, reset, or no such host."""


class Untrusted(Unreachable):
    """The server's certificate does not match what we trust."""


class TimedOut(Unavailable):
    """No answer in time. A write may or may not have happened."""


class TooManyRequests(Unavailable):
    """The server asks to slow down."""


class ServerError(Unavailable):
    """The server failed."""


class Refused(KubeError):
    """The server understood and said no. The same request would be refused again."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason


class BadRequest(Refused):
    pass


class Unauthorized(Refused):
    pass


class Forbidden(Refused):
    pass


class NotFound(Refused):
    pass


class NotServed(NotFound):
    """The server has no such kind, at least now."""


class Conflict(Refused):
    pass


class AlreadyExists(Conflict):
    pass


@dataclass(frozen=True, slots=True)
class Claim:
    """A field that an apply would set and another manager owns."""

    manager: str
    field: str


class FieldConflict(Conflict):
    """Another manager owns what an unforced apply would set."""

    def __init__(self, code: int, reason: str, message: str, claims: tuple[Claim, ...]) -> None:
        super().__init__(code, reason, message)
        self.claims = claims


class Expired(Refused):
    pass


class Invalid(Refused):
    pass


class _Cause(msgspec.Struct):
    reason: str = ""
    message: str = ""
    field: str = ""


class _Details(msgspec.Struct):
    causes: list[_Cause] = []
    retryAfterSeconds: int = 0  # noqa: N815 - the API's name


class ApiStatus(msgspec.Struct):
    """The body of a refusal."""

    code: int = 0
    reason: str = ""
    message: str = ""
    details: _Details | None = None


REFUSALS: dict[int, type[Refused]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Expired,
    413: Invalid,
    422: Invalid,
}


def error_from(code: int, body: bytes, *, what: str, retry_after: str | None = None) -> KubeError:
    """The error that an HTTP answer stands for; `what` names the request in the message."""
    status = _status(code, body)
    message = one_line(f"{what}: {status.message or status.reason or f'HTTP {code}'}")
    if code == 429 or code >= 500:
        delay = _seconds(retry_after) or (status.details.retryAfterSeconds if status.details else 0) or None
        return (TooManyRequests if code == 429 else ServerError)(message, delay)
    causes = status.details.causes if status.details else []
    claims = tuple(
        Claim(_manager_in(cause.message), cause.field) for cause in causes if cause.reason == "FieldManagerConflict"
    )
    if claims:
        return FieldConflict(code, status.reason, message, claims)
    if status.reason == "AlreadyExists":
        return AlreadyExists(code, status.reason, message)
    return REFUSALS.get(code, Refused)(code, status.reason, message)


def _status(code: int, body: bytes) -> ApiStatus:
    try:
        return msgspec.json.decode(body, type=ApiStatus)
    except (ValueError, RecursionError):  # a proxy or a load balancer answered, in its own words
        text = body[:200].decode(errors="replace").strip()
        return ApiStatus(code=code, message=f"HTTP {code} {text}".strip())


def _seconds(header: str | None) -> float | None:
    return float(header) if header and header.isdigit() else None  # dates are not used by API servers


def _manager_in(message: str) -> str:
    """The name in `conflict with "name" using v1` or `conflict with "name" with subresource "status" using v1`."""
    before, quote, rest = message.partition('"')
    return rest.partition('"')[0] if quote else before
