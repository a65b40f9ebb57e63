"""Bodies of forms: what our own pages send, and a reason for all else."""

import pytest

from virt_steward.console.form_body import MEDIA_TYPE, MOST_FIELDS, RefusedRequest, parse_form


@pytest.mark.parametrize(
    ("content_type", "body", "fields"),
    [
        pytest.param(MEDIA_TYPE, b"a=1&b=%C3%A4+x&c=", {"a": "1", "b": "ä x", "c": ""}, id="as-browsers-send-it"),
        pytest.param(f"{MEDIA_TYPE}; charset=UTF-8", b"a=1", {"a": "1"}, id="with-charset"),
        pytest.param(f'{MEDIA_TYPE.upper()};charset="utf-8"', b"a=1&a=2", {"a": "2"}, id="repeated-field"),
        pytest.param(MEDIA_TYPE, b"", {}, id="empty"),
        pytest.param("", b"", {}, id="no-form"),
    ],
)
def test_parse_form_reads_our_own_forms(content_type: str, body: bytes, fields: dict[str, str]) -> None:
    headers = {"Content-Type": content_type} if content_type else {}
    assert parse_form(headers, body) == fields


@pytest.mark.parametrize(
    ("headers", "body", "status", "reason"),
    [
        pytest.param({"Content-Type": f"{MEDIA_TYPE}; charset=nope"}, b"a=1", 415, "UTF-8", id="unknown-charset"),
        pytest.param({"Content-Type": f"{MEDIA_TYPE}; charset=utf-16"}, b"a=1", 415, "UTF-8", id="utf-16"),
        pytest.param({"Content-Type": "multipart/form-data"}, b"a=1", 415, MEDIA_TYPE, id="multipart"),
        pytest.param({"Content-Type": MEDIA_TYPE, "Content-Encoding": "gzip"}, b"x", 415, "compression", id="gzip"),
        pytest.param({}, b"a=1", 415, MEDIA_TYPE, id="no-type"),
        pytest.param({"Content-Type": MEDIA_TYPE}, b"a=\xff", 400, "UTF-8", id="stray-bytes"),
        pytest.param({"Content-Type": MEDIA_TYPE}, b"csrf=%ED%A0%80", 400, "UTF-8", id="surrogate"),
        pytest.param(
            {"Content-Type": MEDIA_TYPE}, b"a=1&" * (MOST_FIELDS + 1), 400, "more than 100 fields", id="many-fields"
        ),
    ],
)
def test_parse_form_refuses_other_bodies_with_reason(
    headers: dict[str, str], body: bytes, status: int, reason: str
) -> None:
    with pytest.raises(RefusedRequest) as refused:
        parse_form(headers, body)
    assert refused.value.status == status
    assert reason in str(refused.value)
