"""The endpoints of notifications, as --notify-config defines them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
from yarl import URL

from virt_steward.objects.errors import UserError
from virt_steward.runtime.addresses import is_loopback

if TYPE_CHECKING:
    from collections.abc import Mapping


class BadEndpoints(UserError):
    """The file of --notify-config is invalid. The message never quotes a URL, which may be a secret."""


class Endpoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """One receiver of notifications, as --notify-config defines it: no object in the cluster contains its URL."""

    url: str
    format: Literal["cloudevents", "slack"] = "cloudevents"
    authorization_file: str = ""
    """A file whose content is sent as the Authorization header; read each time, so it may be rotated."""
    digest_after: Annotated[int, msgspec.Meta(ge=0)] = 30
    """Notifications within a minute that are sent one by one; the others become one digest. 0: never a digest."""


def load_endpoints(path: str) -> Mapping[str, Endpoint]:
    """Read --notify-config: a YAML mapping from names to endpoints."""
    try:
        found = msgspec.yaml.decode(Path(path).read_bytes(), type=dict[str, Endpoint])
    except OSError as error:
        raise BadEndpoints(f"--notify-config {path}: {error.strerror}") from None
    except msgspec.ValidationError as error:
        raise BadEndpoints(f"--notify-config {path}: {error}; an endpoint has url and format") from None
    except msgspec.DecodeError:  # its text quotes the file
        raise BadEndpoints(f"--notify-config {path}: not YAML") from None
    for name, endpoint in found.items():
        if problem := _problem(endpoint):
            raise BadEndpoints(f"--notify-config {path}: endpoint {name}: {problem}")
    return found


def _problem(endpoint: Endpoint) -> str | None:
    try:
        url = URL(endpoint.url)
    except ValueError:
        return "url is invalid"
    if url.scheme not in ("https", "http") or not url.host:
        return "url must start with https:// (or http://) and have a host"
    if url.user or url.password:
        return "url contains a password: put it into a file, and set authorizationFile"
    if endpoint.authorization_file and url.scheme == "http" and not is_loopback(url.host):
        return "authorizationFile would be sent unencrypted over http://: use https://, or remove authorizationFile"
    return None
