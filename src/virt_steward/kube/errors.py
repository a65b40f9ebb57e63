"""All errors of requests to an API server, as one tree.

KubeError
├── BadConfig              a kubeconfig, a file or a credential is unusable; nothing was sent
├── NotLeading             the lease is lost or about to be; nothing was sent
├── Unavailable            no valid answer: the same request may succeed later
│   ├── Unreachable        refused, reset, no such host
│   │   └── Untrusted      the server's certificate is not trusted
│   ├── TimedOut
│   ├── InvalidAnswer      an answer that no API server gives: not JSON, too many items, without end
│   │   └── AnswerTooLong  more bytes than are read
│   ├── TooManyRequests    429
│   └── ServerError        5xx
└── Refused                the server refused the request, and would again
    ├── BadRequest         400
    ├── Unauthorized       401
    ├── Forbidden          403
    ├── NotFound           404, the object
    │   └── NotServed      404, the kind: its CRD is not (yet) there
    ├── Conflict           409, a precondition or a concurrent write
    │   ├── AlreadyExists
    │   └── FieldConflict  another field manager owns a field that the apply would set
    ├── Expired            410, a resourceVersion or a page token is too old
    └── Invalid            422, by schema or admission

A failed read is never "absent": only NotFound means that an object is not there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import msgspec

from virt_steward.objects.errors import UserError


class KubeError(UserError):
    """A request to an API server failed."""


class BadConfig(KubeError):
    """A kubeconfig, a file or a credential is unusable; nothing was sent."""


def unusable(where: str, problem: str) -> BadConfig:
    """The error about a kubeconfig, a file or a credential: where it is, what is wrong, what to do."""
    return BadConfig(one_line(f"{where}: {problem[:LONGEST_MESSAGE]}"))


def one_line(text: str) -> str:
    """The text on one line, without control characters, whatever the names and outputs quoted in it contain."""
    return "".join(char if char.isprintable() else "?" for char in " ".join(text.split()))


class NotLeading(KubeError):
    """The lease is lost, or would expire before the write could end; nothing was sent."""


class Unavailable(KubeError):
    """No valid answer: the same request may succeed later."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class ServerUnreachable(Unavailable):
    """Refused, reset, or no such host."""


class Untrusted(ServerUnreachable):
    """The server's certificate is not trusted."""


class TimedOut(Unavailable):
    """The request timed out. A write may or may not have been executed."""


INVALID = "invalid answer"


class InvalidAnswer(Unavailable):
    """The answer is not one of an API server: it is not JSON, too long, or has no end. Only our own words are shown."""

    def __init__(self, what: str, problem: str = INVALID, *, detail: str = "") -> None:
        """`problem` is the same for all answers of its sort; `detail` may differ from one to the next."""
        super().__init__(one_line(f"{what}: {problem}: {detail[:LONGEST_DETAIL]}" if detail else f"{what}: {problem}"))
        self.problem = problem


class AnswerTooLong(InvalidAnswer):
    """The answer has more bytes than are read."""


class TooManyRequests(Unavailable):
    """The server answered 429: it asks to retry later."""


class ServerError(Unavailable):
    """The server answered 5xx."""


class Refused(KubeError):
    """The server refused the request. The same request would be refused again."""

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
    """The server does not serve this kind, at least now."""


class Conflict(Refused):
    pass


class AlreadyExists(Conflict):
    pass


@dataclass(frozen=True, slots=True)
class Claim:
    """A field that an apply would set and another field manager owns."""

    manager: str
    field: str


class FieldConflict(Conflict):
    """Another field manager owns a field that an unforced apply would set."""

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
    """The body of a refusal, a `Status` of the API."""

    code: int = 0
    reason: str = ""
    message: str = ""
    details: _Details | None = None


LONGEST_DETAIL = 200
LONGEST_MESSAGE = 4096
"""Characters of a server's message that are kept: anybody may have chosen them, and they end in conditions."""
LONGEST_PAUSE = 3600.0
"""Seconds that a server may ask us to wait. A longer pause would let it stop us for a day."""

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


_CONTENT_TYPE = re.compile("[a-z0-9.+-]{1,40}/[a-z0-9.+-]{1,40}")

_NAMED_IN_MESSAGES = {401: "unauthorized", 403: "forbidden"}
"""The server's own message does not always say so: an admission webhook, for example, writes its own text."""


def error_from(
    code: int, body: bytes, *, what: str, retry_after: str | None = None, content_type: str = ""
) -> KubeError:
    """The error for an HTTP answer; `what` names the request in the message."""
    status = _status(code, body, content_type)
    prefix = f"{_NAMED_IN_MESSAGES[code]} ({code}): " if code in _NAMED_IN_MESSAGES else ""
    message = one_line(
        f"{what}: {prefix}{status.message[:LONGEST_MESSAGE] or status.reason[:LONGEST_DETAIL] or f'HTTP {code}'}"
    )
    if code == 429 or code >= 500:
        delay = _seconds(retry_after) or (status.details.retryAfterSeconds if status.details else 0)
        pause = min(delay, LONGEST_PAUSE) if delay > 0 else None
        return (TooManyRequests if code == 429 else ServerError)(message, pause)
    causes = status.details.causes if status.details else []
    claims = tuple(
        Claim(_manager_in(cause.message), cause.field) for cause in causes if cause.reason == "FieldManagerConflict"
    )
    if claims:
        return FieldConflict(code, status.reason, message, claims)
    if status.reason == "AlreadyExists":
        return AlreadyExists(code, status.reason, message)
    return REFUSALS.get(code, Refused)(code, status.reason, message)


def _status(code: int, body: bytes, content_type: str) -> ApiStatus:
    """The server's own Status. An answer of another kind is not quoted: anybody in between may have written it."""
    try:
        return msgspec.json.decode(body, type=ApiStatus)
    except (ValueError, RecursionError):  # a proxy or a load balancer answered, not the API server
        kind = f", {content_type}" if _CONTENT_TYPE.fullmatch(content_type) else ""
        return ApiStatus(code=code, message=f"HTTP {code} (the answer is not a Status of the API{kind})")


def _seconds(header: str | None) -> float:
    """Retry-After in seconds; 0 for a date, which API servers do not send, and for anything else."""
    is_number = header is not None and header.isascii() and header.isdigit() and len(header) < 10
    return float(header or 0) if is_number else 0.0


def _manager_in(message: str) -> str:
    """The name in `conflict with "name" using v1` or `conflict with "name" with subresource "status" using v1`."""
    before, quote, rest = message.partition('"')
    return rest.partition('"')[0] if quote else before
