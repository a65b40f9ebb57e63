"""Requests that no browser sends: each gets a plain answer with a reason, and no traceback in the log."""

import asyncio
import logging

import pytest

from tests.console.rig import Browser, Served
from virt_steward.console.form_body import MEDIA_TYPE

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def sent(served: Served, head: str, body: bytes = b"", session: str = "") -> tuple[int, str]:
    """Status and text of the answer to a request as it is written here."""
    address = served.console.address
    cookie = f"Cookie: virt_steward_session={session}\r\n" if session else ""
    common = f"Host: {address}\r\nOrigin: {served.origin}\r\n{cookie}Connection: close\r\n"
    reader, writer = await asyncio.open_connection(address.host, address.port)
    first, _, rest = head.partition("\r\n")
    writer.write(f"{first}\r\n{common}{rest}\r\n".encode(errors="surrogateescape") + body)
    async with asyncio.timeout(30):
        answer = (await reader.read()).decode(errors="replace")
    writer.close()
    return int(answer.split()[1]), answer.partition("\r\n\r\n")[2]


def post(path: str, content_type: str, body: bytes, *headers: str) -> tuple[str, bytes]:
    lines = (f"POST {path} HTTP/1.1", f"Content-Type: {content_type}", f"Content-Length: {len(body)}", *headers)
    return "\r\n".join((*lines, "")), body


BOUNDED = "multipart/form-data; boundary=x"
PATHS = ["/sign-in", "/theme", "/sign-out", "/no-such-page", "/profiles/load-aware-rebalancing/approve"]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    ("content_type", "body", "status"),
    [
        *(
            pytest.param(f"{MEDIA_TYPE}; charset={one}", b"a=1", 415, id=one)
            for one in ("nope", "hex", "zlib", "utf-16")
        ),
        pytest.param("multipart/form-data", b"--x\r\n\r\n--x--", 415, id="multipart-without-boundary"),
        pytest.param(BOUNDED, b"--y\r\nnonsense", 415, id="broken-multipart"),
        pytest.param(BOUNDED, b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n', 415, id="cut-multipart"),
        pytest.param(MEDIA_TYPE, b"csrf=%ED%A0%80&token=%ED%A0%80", 400, id="surrogate"),
        pytest.param(MEDIA_TYPE, b"a=1&" * 1000, 400, id="many-fields"),
        pytest.param(MEDIA_TYPE, b"a=" + b"x" * 70_000, 413, id="long"),
    ],
)
async def test_console_refuses_bad_form_with_reason(
    served: Served, caplog: pytest.LogCaptureFixture, path: str, *, content_type: str, body: bytes, status: int
) -> None:
    with caplog.at_level(logging.WARNING):
        answer = await sent(served, *post(path, content_type, body))
    assert answer[0] == status
    assert answer[1]
    assert caplog.records == []


@pytest.mark.parametrize(
    ("head", "body", "status"),
    [
        pytest.param("GET /live?page=//%5B HTTP/1.1\r\n", b"", 404, id="live-of-no-host"),
        pytest.param("GET /live?page=/%5B%5D//%5B HTTP/1.1\r\n", b"", 404, id="live-of-brackets"),
        pytest.param("GET /live?page=%00 HTTP/1.1\r\n", b"", 404, id="live-of-nul"),
        pytest.param("GET /?q=\udcff HTTP/1.1\r\n", b"", 400, id="stray-byte-in-query"),
        pytest.param("GET /\udcff HTTP/1.1\r\n", b"", 400, id="stray-byte-in-path"),
        pytest.param("GET /sign-in/link?code=\udcff HTTP/1.1\r\n", b"", 400, id="stray-byte-in-link"),
        pytest.param("GET /?q=%ED%A0%80 HTTP/1.1\r\n", b"", 200, id="encoded-surrogate"),
        pytest.param("GET /%FF%00 HTTP/1.1\r\n", b"", 404, id="encoded-nul"),
        pytest.param(
            f"POST /theme HTTP/1.1\r\nContent-Type: {MEDIA_TYPE}\r\nTransfer-Encoding: chunked\r\n",
            b"zz\r\n\r\n",
            400,
            id="bad-chunk",
        ),
        pytest.param(
            f"POST /theme HTTP/1.1\r\nContent-Type: {MEDIA_TYPE}\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n",
            b"junk",
            400,
            id="bad-gzip",
        ),
    ],
)
async def test_console_answers_malformed_request_with_reason(
    served: Served, browser: Browser, caplog: pytest.LogCaptureFixture, *, head: str, body: bytes, status: int
) -> None:
    with caplog.at_level(logging.WARNING):
        answer = await sent(served, head, body, browser.session)
    assert answer[0] == status
    assert caplog.records == []


async def test_console_ignores_stray_bytes_in_cookies(served: Served, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        status, _ = await sent(served, "GET / HTTP/1.1\r\nCookie: virt_steward_session=\udcff; \udcfe\r\n")
    assert status == 303
    assert caplog.records == []
