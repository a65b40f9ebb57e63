"""Where notifications go: a mounted file that names endpoints, so that no object in the cluster carries an address."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec
from yarl import URL

from virt_steward.objects.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Mapping


class BadEndpoints(UserError):
    """The file cannot be used: one line that names it and the entry, never the address, which may be a secret."""


class Endpoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """One receiver."""

    url: str
    format: Literal["cloudevents", "slack"] = "cloudevents"
    authorization_file: str = ""
    """A file whose content is sent as the Authorization header; read each time, so it may be rotated."""


def load_endpoints(path: str) -> Mapping[str, Endpoint]:
    """Read the file: YAML with an endpoint under each name."""
    try:
        found = msgspec.yaml.decode(Path(path).read_bytes(), type=dict[str, Endpoint])
    except OSError as error:
        raise BadEndpoints(f"--notify-config {path}: {error.strerror}") from None
    except msgspec.ValidationError as error:
        raise BadEndpoints(f"--notify-config {path}: {error}; an endpoint has url and format") from None
    except msgspec.DecodeError:  # its text would quote the file
        raise BadEndpoints(f"--notify-config {path}: this is not YAML") from None
    for name, endpoint in found.items():
        if problem := _problem(endpoint):
            raise BadEndpoints(f"--notify-config {path}: endpoint {name}: {problem}")
    return found


def _problem(endpoint: Endpoint) -> str | None:
    try:
        url = URL(endpoint.url)
    except ValueError:
        return "its url cannot be read"
    if url.scheme not in ("https", "http") or not url.host:
        return "its url must begin with https:// (or http://) and name a host"
    if url.user or url.password:
        return "its url carries a password: put it into a file, and name that as authorizationFile"
    return None
