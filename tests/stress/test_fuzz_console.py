"""Whatever strangers send to the console, it answers with a reason, and never with a traceback."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from tests.console.test_server import an_unconnected_console
from virt_steward.apis.profiles import OPTIONS_OF
from virt_steward.console import forms
from virt_steward.console.authentication import fingerprint_of, is_same_secret
from virt_steward.console.form_body import LONGEST_FORM, MEDIA_TYPE, MOST_FIELDS, RefusedRequest, parse_form
from virt_steward.console.handlers import own_path
from virt_steward.console.routes import ROUTES
from virt_steward.console.server import Console
from virt_steward.objects.errors import UserError

T = TypeVar("T")
Example = tuple[str, str, list[str], bytes]
"""Method, target, header lines and body."""
INPUTS = 10_000
REQUESTS = 10_000
AT_ONCE = 200

many = settings(max_examples=INPUTS, deadline=None, suppress_health_check=list(HealthCheck), database=None)
any_text = st.text(st.characters(), max_size=60)
"""With surrogates, NUL and line ends."""
charsets = st.sampled_from(["utf-8", "UTF8", '"utf-8"', "nope", "hex", "zlib", "utf-16", "utf-7", "idna", "\x00"])
content_types = st.one_of(
    st.just(MEDIA_TYPE),
    st.builds("{}; charset={}".format, st.sampled_from([MEDIA_TYPE, "multipart/form-data"]), charsets),
    st.builds("multipart/form-data; boundary={}".format, any_text),
    any_text,
)
pair_texts = st.text("ab=&%+;\x00ä€\udc80CDEFcdef0123456789", max_size=80)
bodies = st.one_of(st.binary(max_size=200), pair_texts.map(lambda text: text.encode(errors="surrogateescape")))


def _result(parse: Callable[[], T]) -> T | UserError:
    """What it returns, or the refusal; any other error is a defect."""
    try:
        return parse()
    except UserError as refused:
        return refused


@many
@given(content_type=content_types, encoding=st.sampled_from([None, "gzip", "br", ""]), body=bodies)
def test_parse_form_reads_or_gives_reason(content_type: str, encoding: str | None, body: bytes) -> None:
    headers = {"Content-Type": content_type} | ({"Content-Encoding": encoding} if encoding is not None else {})
    fields = _result(lambda: parse_form(headers, body))
    if isinstance(fields, RefusedRequest):
        assert fields.status in (400, 415)
        assert str(fields)
        return
    assert len(fields) <= MOST_FIELDS
    for name, value in fields.items():
        (name + value).encode()  # valid Unicode


@many
@given(
    profile=st.sampled_from(sorted(OPTIONS_OF)),
    data=st.data(),
    before=st.dictionaries(any_text, st.one_of(st.none(), st.dictionaries(any_text, any_text, max_size=3)), max_size=3),
)
def test_profile_options_are_read_or_refused_by_name(
    profile: str, data: st.DataObject, before: dict[str, object]
) -> None:
    fields = forms.fields(profile, {})
    filled = {
        f"option.{one.name}": data.draw(st.one_of(any_text, st.sampled_from(["true", "1", "²", "9" * 400, "a=b,c"])))
        for one in fields
    }
    patch = _result(lambda: forms.read(profile, filled, before))
    if isinstance(patch, UserError):
        assert any(str(patch).startswith(f"{one.name}: ") for one in fields)
        assert len(str(patch)) < 500
        return
    assert isinstance(patch, dict)


@many
@given(ours=st.text(st.sampled_from("abc-_"), min_size=1, max_size=5), given_text=any_text)
def test_secret_is_compared_with_any_text(ours: str, given_text: str) -> None:
    assert is_same_secret(ours, given_text) is (ours == given_text)
    assert len(fingerprint_of(given_text)) == 64


@many
@given(path=st.one_of(any_text, st.text("/\\.%[]@:?#\t\n 5Baexml", max_size=20)))
def test_own_path_never_leaves_the_console(path: str) -> None:
    found = own_path(path)
    assert found.startswith("/")
    assert not found.startswith(("//", "/\\"))
    found.encode("ascii", errors="xmlcharrefreplace")
    assert "\n" not in found


PATHS = sorted({route.path for route in ROUTES})
targets = st.one_of(
    st.sampled_from(PATHS),
    st.builds("{}?{}".format, st.sampled_from(PATHS), st.text("pageqto=&%/[]5B0ED\\:;?+", max_size=40)),
    st.text("/%.[]{}\\?#:@0Dxé\udcff", min_size=1, max_size=40).map(lambda text: f"/{text}"),
)


def _one_line(text: str) -> str:
    return "".join(one for one in text if one.isprintable())


header_lines = st.lists(
    st.one_of(
        st.builds("Content-Type: {}".format, content_types.map(_one_line)),
        st.builds("Cookie: {}".format, st.text('virt_steward_session=;,"\\ \udcff', max_size=40)),
        st.builds("X-Forwarded-Access-Token: {}".format, st.text("ab.\udcffé", max_size=20)),
        st.sampled_from(["Content-Encoding: gzip", "Transfer-Encoding: chunked", "Expect: 100-continue", "Range: x"]),
        st.sampled_from(["X-Forwarded-Proto: https", "Upgrade: websocket", "If-None-Match: *", "Accept: text/html"]),
    ),
    max_size=4,
    unique_by=lambda line: line.partition(":")[0],
)
methods = st.sampled_from(["GET", "GET", "POST", "POST", "POST", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE"])
requests = st.tuples(methods, targets, header_lines, bodies)


async def test_console_answers_any_request(caplog: pytest.LogCaptureFixture) -> None:
    sample = _examples(requests, REQUESTS)
    statuses: Counter[int] = Counter()
    with capture_logs() as logs, caplog.at_level(logging.WARNING):
        async with an_unconnected_console() as console:
            limit = asyncio.Semaphore(AT_ONCE)
            statuses.update(await asyncio.gather(*(_status(console, limit, one) for one in sample)))
            assert console.failure() is None
    figures = ", ".join(f"{count} x {status}" for status, count in sorted(statuses.items()))
    print(f"\n{REQUESTS} requests to a console before sign-in: {figures}")
    assert max(statuses) < 500
    assert caplog.records == []
    assert [line for line in logs if line["log_level"] not in ("info", "warning")] == []


def _examples(strategy: st.SearchStrategy[Example], count: int) -> list[Example]:
    """So many examples at once, since hypothesis runs no coroutines."""
    found: list[Example] = []

    @settings(max_examples=count, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(strategy)
    def collect(example: Example) -> None:
        found.append(example)

    collect()
    while len(found) < count:  # hypothesis may have found fewer that differ
        found += found[: count - len(found)]
    return found[:count]


async def _status(console: Console, limit: asyncio.Semaphore, example: Example) -> int:
    """The status of the answer; 0 if the connection was closed without one."""
    address, (method, target, headers, body) = console.address, example
    is_chunked = "Transfer-Encoding: chunked" in headers
    length = [] if is_chunked else [f"Content-Length: {len(body)}"]
    lines = [f"{method} {target} HTTP/1.1", f"Host: {address}", f"Origin: http://{address}", *headers, *length]
    head = "\r\n".join([*lines, "Connection: close", "", ""]).encode(errors="surrogateescape")
    async with limit, asyncio.timeout(120):
        reader, writer = await asyncio.open_connection(address.host, address.port)
        try:
            writer.write(head + body)
            if is_chunked:
                writer.write_eof()
            answer = await reader.read(LONGEST_FORM)
        except ConnectionResetError:
            return 0
        finally:
            writer.close()
    return int(answer.split()[1]) if answer.startswith(b"HTTP/") else 0
