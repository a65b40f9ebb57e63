"""The body of a form, as our own pages send it: URL-encoded UTF-8, and small. Anything else is refused with a reason.

aiohttp would also decode multipart bodies and any charset that Python has a codec for. Our pages send neither, and
each is a parser that strangers could use before they sign in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from virt_steward.objects.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Mapping

MEDIA_TYPE = "application/x-www-form-urlencoded"
LONGEST_FORM = 64 * 1024
"""Bytes."""
MOST_FIELDS = 100


class RefusedRequest(UserError):
    """A request that no page of ours sends."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


def parse_form(headers: Mapping[str, str], body: bytes) -> dict[str, str]:
    """The fields by name; of a repeated name, the last one. Raises RefusedRequest."""
    content_type = headers.get("Content-Type", "")
    media_type, _, parameters = content_type.partition(";")
    if not body and not content_type:
        return {}
    if media_type.strip().lower() != MEDIA_TYPE or "Content-Encoding" in headers:
        raise RefusedRequest(415, f"Send forms as {MEDIA_TYPE}, without compression.")
    if not _is_utf8(parameters):
        raise RefusedRequest(415, "Send forms in UTF-8.")
    try:
        fields = parse_qsl(
            body.decode(), keep_blank_values=True, errors="strict", max_num_fields=MOST_FIELDS, separator="&"
        )
    except UnicodeDecodeError:
        raise RefusedRequest(400, "The form is not valid UTF-8.") from None
    except ValueError:
        raise RefusedRequest(400, f"The form has more than {MOST_FIELDS} fields.") from None
    return dict(fields)


def _is_utf8(parameters: str) -> bool:
    """Whether the parameters of a content type name UTF-8, or no charset."""
    pairs = (one.partition("=") for one in parameters.split(";"))
    charsets = [value.strip().strip('"').lower() for name, _, value in pairs if name.strip().lower() == "charset"]
    return all(one in ("utf-8", "utf8") for one in charsets)
