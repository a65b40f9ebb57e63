"""Who looks: a person with credentials of their own, which are all that is ever used to write."""

from __future__ import annotations

import hashlib
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


class NotSignedIn(UserError):
    """Why somebody is not let in, in one line for them."""


@dataclass(frozen=True, slots=True)
class Viewer:
    user: str
    """As the API server knows them."""
    client: Client
    """Acts as the viewer, and can do what they can."""
    expires: datetime | None
    """When their token ends, if it tells."""
    fingerprint: str
    """Tells one token from another without keeping either."""

    async def leave(self) -> None:
        await self.client.connection.close()


@dataclass(frozen=True, slots=True)
class Authenticator:
    """Lets viewers in."""

    cluster: ClusterConfig
    """The API server, and how to trust it; the credentials in it are not used for viewers."""
    discovery: Discovery
    observe: RequestObserver
    now: Callable[[], datetime]

    async def with_token(self, text: str) -> Viewer:
        """Raises NotSignedIn unless the API server knows the token."""
        text = text.strip()
        try:
            credentials = UserCredentials(token(text, "you"), no_certificate(), self.now)
        except KubeError as error:
            raise NotSignedIn(str(error)) from None
        expires = expiry_of_token(text)
        if expires is not None and expires <= self.now():
            raise NotSignedIn("this token has expired: get a new one")
        cluster = replace(self.cluster, credentials=credentials, impersonate=())
        return await self._welcomed(cluster, expires, fingerprint_of(text))

    async def as_owner_of(self, cluster: ClusterConfig) -> Viewer:
        """With the credentials of a kubeconfig, as a one-time link allows."""
        return await self._welcomed(cluster, None, "")

    async def _welcomed(self, cluster: ClusterConfig, expires: datetime | None, fingerprint: str) -> Viewer:
        connection = Connection(cluster, user_agent=AGENT, observe=self.observe)
        client = Client(connection, self.discovery, Caller(AGENT))
        try:
            return Viewer(await _name_of(client), client, expires, fingerprint)
        except BaseException:
            await connection.close()
            raise


async def _name_of(client: Client) -> str:
    try:
        user = await name_of_caller(client)
    except Unauthorized:
        raise NotSignedIn("the API server does not accept this token: get a new one") from None
    except KubeError as error:
        raise NotSignedIn(f"nobody can tell now whose token this is: {error}") from None
    if user == ANONYMOUS:
        raise NotSignedIn("the API server takes this token for nobody's")
    return user


def fingerprint_of(text: str) -> str:
    return hashlib.sha256(text.strip().encode()).hexdigest()
