import json
from typing import Any

import msgspec
import pytest

from tests.widgets import a_widget
from virt_steward.kube.client import Client
from virt_steward.kube.errors import (
    LONGEST_MESSAGE,
    LONGEST_PAUSE,
    AlreadyExists,
    BadRequest,
    Claim,
    Conflict,
    Expired,
    FieldConflict,
    Forbidden,
    Invalid,
    KubeError,
    NotFound,
    Refused,
    ServerError,
    TooManyRequests,
    Unauthorized,
    Unavailable,
    error_from,
)


def a_status(reason: str = "", message: str = "", **details: Any) -> bytes:
    return json.dumps({"kind": "Status", "reason": reason, "message": message, "details": details}).encode()


@pytest.mark.parametrize(
    ("code", "reason", "expected"),
    [
        pytest.param(400, "BadRequest", BadRequest, id="400"),
        pytest.param(401, "Unauthorized", Unauthorized, id="401"),
        pytest.param(403, "Forbidden", Forbidden, id="403"),
        pytest.param(404, "NotFound", NotFound, id="404"),
        pytest.param(405, "MethodNotAllowed", Refused, id="405"),
        pytest.param(409, "Conflict", Conflict, id="409"),
        pytest.param(409, "AlreadyExists", AlreadyExists, id="409 of a second create"),
        pytest.param(410, "Expired", Expired, id="410"),
        pytest.param(413, "RequestEntityTooLarge", Invalid, id="413"),
        pytest.param(415, "UnsupportedMediaType", Refused, id="415"),
        pytest.param(422, "Invalid", Invalid, id="422"),
        pytest.param(429, "TooManyRequests", TooManyRequests, id="429"),
        pytest.param(500, "InternalError", ServerError, id="500"),
        pytest.param(503, "ServiceUnavailable", ServerError, id="503"),
        pytest.param(504, "Timeout", ServerError, id="504"),
    ],
)
def test_error_from_maps_status_codes(code: int, reason: str, expected: type[KubeError]) -> None:
    error = error_from(code, a_status(reason, "the server's words"), what="get ConfigMap a/b")
    assert type(error) is expected
    named = {401: "unauthorized (401): ", 403: "forbidden (403): "}.get(code, "")
    assert str(error) == f"get ConfigMap a/b: {named}the server's words"


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"404 page not found\n", id="plain text"),
        pytest.param(b"<html>\n<body>\r\nBad Gateway\x1b[31m</body></html>" * 50, id="a page of a load balancer"),
        pytest.param(b"\xff\xfe\x00", id="no text at all"),
        pytest.param(b'{"message": "\xff"}', id="JSON that is no UTF-8"),
        pytest.param(b"[1, 2]", id="JSON that is no object"),
        pytest.param(b'{"message": 3}', id="JSON of another shape"),
        pytest.param(b'{"message": "x", "odd": ' + b"[" * 5000 + b"]" * 5000 + b"}", id="JSON nested without end"),
        pytest.param(a_status(message="several\nlines\x00"), id="a message of several lines"),
    ],
)
@pytest.mark.parametrize(("code", "expected"), [(404, NotFound), (502, ServerError)])
def test_error_from_gives_one_readable_line(body: bytes, code: int, expected: type[KubeError]) -> None:
    error = error_from(code, body, what="get it")
    assert type(error) is expected
    assert str(error).startswith("get it: ")
    assert str(error).isprintable()
    assert len(str(error)) < 300


@pytest.mark.parametrize(
    ("header", "details", "expected"),
    [
        pytest.param("7", {}, 7.0, id="by its header"),
        pytest.param(None, {"retryAfterSeconds": 5}, 5.0, id="by its body"),
        pytest.param("7", {"retryAfterSeconds": 5}, 7.0, id="by both, where the header counts"),
        pytest.param("Wed, 21 Oct 2026 07:28:00 GMT", {}, None, id="by a date, which is passed over"),
        pytest.param(None, {}, None, id="not at all"),
    ],
)
@pytest.mark.parametrize("code", [429, 503])
def test_error_from_reads_retry_after(
    code: int, header: str | None, details: dict[str, Any], expected: float | None
) -> None:
    error = error_from(code, a_status(**details), what="get it", retry_after=header)
    assert isinstance(error, Unavailable)
    assert error.retry_after == expected


def test_error_from_names_conflicting_managers() -> None:
    causes = [
        {"reason": "FieldManagerConflict", "message": 'conflict with "kubectl" using v1', "field": ".data.a"},
        {
            "reason": "FieldManagerConflict",
            "message": 'conflict with "olm" with subresource "status" using g/v1 at 2026-11-01T12:00:00Z',
            "field": ".status.phase",
        },
    ]
    error = error_from(409, a_status("Conflict", "Apply failed", causes=causes), what="apply it")
    assert isinstance(error, FieldConflict)
    assert error.claims == (Claim("kubectl", ".data.a"), Claim("olm", ".status.phase"))


async def test_field_conflict_names_owners_on_real_server(admin: Client, widgets: str) -> None:
    await admin.apply(a_widget(widgets, size=1, colour="red"), manager="first owner")
    status = {**a_widget(widgets), "status": {"phase": "Ready"}}
    del status["spec"]
    await admin.apply(status, manager="its status", subresource="status")
    with pytest.raises(FieldConflict) as of_spec:
        await admin.apply(a_widget(widgets, size=2, colour="red"), manager="second")
    assert of_spec.value.claims == (Claim("first owner", ".spec.size"),)
    status["status"] = {"phase": "Lost"}
    with pytest.raises(FieldConflict) as of_status:
        await admin.apply(status, manager="second", subresource="status")
    assert of_status.value.claims == (Claim("its status", ".status.phase"),)


@pytest.mark.parametrize(
    ("header", "details", "pause"),
    [
        ("3", 0, 3.0),
        ("86400", 0, LONGEST_PAUSE),
        ("²", 0, None),
        ("-5", 0, None),
        ("9" * 5000, 0, None),
        ("Wed, 21 Oct 2026 07:28:00 GMT", 0, None),
        (None, 86400, LONGEST_PAUSE),
        (None, -1, None),
    ],
)
def test_retry_after_is_bounded(header: str | None, details: int, pause: float | None) -> None:
    body = msgspec.json.encode({"code": 429, "details": {"retryAfterSeconds": details}})
    error = error_from(429, body, what="list pods", retry_after=header)
    assert isinstance(error, TooManyRequests)
    assert error.retry_after == pause


@pytest.mark.parametrize(
    ("content_type", "shown"),
    [
        ("text/html", "the answer is not a Status of the API, text/html"),
        ("", "the answer is not a Status of the API"),
        ("a token\n/x", "the answer is not a Status of the API"),
    ],
)
def test_error_from_does_not_quote_other_answers(content_type: str, shown: str) -> None:
    error = error_from(502, b"<html>a token</html>", what="get it", content_type=content_type)
    assert str(error) == f"get it: HTTP 502 ({shown})"


def test_error_from_bounds_the_message() -> None:
    assert len(str(error_from(500, a_status(message="x" * 10**6), what="get it"))) < LONGEST_MESSAGE + 100
    assert len(str(error_from(500, a_status(reason="x" * 10**6), what="get it"))) < 300
