"""Sign-in: a viewer's token or a one-time link becomes a client with the viewer's own credentials."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from virt_steward.kube.client import Caller, Client
from virt_steward.kube.connection import Connection
from virt_steward.kube.credentials import UserCredentials, expiry_of_token, no_certificate, token
from virt_steward.kube.errors import KubeError, Unauthorized
from virt_steward.kube.whoami import name_of_caller
from virt_steward.objects.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from virt_steward.kube.connection import RequestObserver
    from virt_steward.kube.discovery import Discovery
    from virt_steward.kube.kubeconfig import ClusterConfig

AGENT = "virt-steward console"
ANONYMOUS = "system:anonymous"
LINK_PATH = "/sign-in/link"
NOT_ACCEPTED = "The API server does not accept this token. Get a new one."


class NotSignedIn(UserError):
    """Why a sign-in is refused, in one sentence for the viewer."""


@dataclass(frozen=True, slots=True)
class Viewer:
    """A signed-in person."""

    user: str
    """As the API server knows them."""
    client: Client
    """Has the viewer's credentials, and so their rights."""
    expires: datetime | None
    """When their token expires, if it says so."""
    fingerprint: str
    """Tells one token from another without keeping either."""

    async def leave(self) -> None:
        await self.client.connection.close()


@dataclass(frozen=True, slots=True)
class Authenticator:
    """Makes viewers of valid credentials."""

    cluster: ClusterConfig
    """The API server, and how to trust it; the credentials in it are not used for viewers."""
    discovery: Discovery
    observe: RequestObserver
    now: Callable[[], datetime]

    async def with_token(self, text: str) -> Viewer:
        """Raises NotSignedIn unless the API server accepts the token."""
        text = text.strip()
        try:
            credentials = UserCredentials(token(text, "you"), no_certificate(), self.now)
        except KubeError as error:
            raise NotSignedIn(str(error)) from None
        expires = expiry_of_token(text)
        if expires is not None and expires <= self.now():
            raise NotSignedIn("The token has expired. Get a new one.")
        cluster = replace(self.cluster, credentials=credentials, impersonate=())
        return await self._viewer(cluster, expires, fingerprint_of(text))

    async def as_owner_of(self, cluster: ClusterConfig) -> Viewer:
        """With the credentials of a kubeconfig, as a one-time link allows."""
        return await self._viewer(cluster, None, "")

    async def _viewer(self, cluster: ClusterConfig, expires: datetime | None, fingerprint: str) -> Viewer:
        connection = Connection(cluster, user_agent=AGENT, observe=self.observe)
        client = Client(connection, self.discovery, Caller(AGENT))
        try:
            return Viewer(await _name_of(client), client, expires, fingerprint)
        except BaseException:
            await connection.close()
            raise


class SignInLink:
    """A one-time link: anybody who can read the terminal can sign in as the owner of the kubeconfig.

    There is one valid link at a time; when it is used, the next one is printed.
    """

    def __init__(self, owner: ClusterConfig, announce: Callable[[str], None]) -> None:
        self._owner = owner
        self._announce = announce
        self._code = ""
        self._origin = ""

    def offer(self, origin: str) -> None:
        """Announce the first link."""
        self._origin = origin
        self._renew()

    def redeem(self, code: str) -> ClusterConfig | None:
        """The owner's credentials; None if the code is not the valid one."""
        if not self._code or not is_same_secret(self._code, code):
            return None
        self._renew()
        return self._owner

    def _renew(self) -> None:
        self._code = secrets.token_urlsafe(32)
        self._announce(f"{self._origin}{LINK_PATH}?code={self._code}")


async def _name_of(client: Client) -> str:
    try:
        user = await name_of_caller(client)
    except Unauthorized:
        raise NotSignedIn(NOT_ACCEPTED) from None
    except KubeError as error:
        raise NotSignedIn(f"The token cannot be checked now: {error}") from None
    if user == ANONYMOUS:
        raise NotSignedIn(NOT_ACCEPTED)
    return user


def fingerprint_of(text: str) -> str:
    return hashlib.sha256(_bytes_of(text.strip())).hexdigest()


def is_same_secret(ours: str, given: str) -> bool:
    """Compare in constant time; what is given may be any text."""
    return hmac.compare_digest(_bytes_of(ours), _bytes_of(given))


def _bytes_of(text: str) -> bytes:
    """Also of text that is not valid Unicode, such as a header with stray bytes."""
    return text.encode(errors="surrogatepass")
