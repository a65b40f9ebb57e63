"""Credentials for an API server: tokens and client certificates, fixed or in files that rotate."""

from __future__ import annotations

import base64
import contextlib
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from virt_steward.kube.errors import BadConfig, one_line, unusable
from virt_steward.kube.tls import KeyPair, check_pair, expiry_of

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
Headers = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Authentication:
    """The credentials of one request."""

    headers: Headers = field(default=(), repr=False)
    client_certificate: KeyPair | None = None


class Credentials(Protocol):
    """A source of credentials, which may rotate while the process runs."""

    async def current(self) -> Authentication:
        """The credentials to use now; cheap if nothing changed."""

    async def rejected(self, used: Authentication) -> bool:
        """After a 401: whether there are newer credentials to try."""

    def explain(self) -> str:
        """One line for people after a final 401: which credential was used, whether it expired, what to do."""


class CredentialSource(Protocol[T_co]):
    """One part of the credentials."""

    name: str
    remedy: str

    def current(self) -> T_co: ...

    def reread(self) -> T_co: ...


class Fixed(Generic[T]):
    """A value in the kubeconfig itself, which does not change."""

    remedy = "get a new kubeconfig"

    def __init__(self, name: str, value: T) -> None:
        self.name = name
        self._value = value

    def current(self) -> T:
        return self._value

    def reread(self) -> T:
        return self._value


class Rotating(Generic[T]):
    """A value from files, read again when they change. While they are replaced, the last valid value is used."""

    remedy = "renew it"

    def __init__(self, name: str, read: Callable[[], T], *paths: Path) -> None:
        self.name = name
        self._read = read
        self._paths = paths
        self._stamp = self._stamp_now()
        self._value = read()

    def current(self) -> T:
        return self._value if self._stamp == self._stamp_now() else self.reread()

    def reread(self) -> T:
        with contextlib.suppress(BadConfig):  # missing, empty or half replaced: read again next time
            stamp = self._stamp_now()  # before reading, so that a change in between is noticed next time
            self._value = self._read()
            self._stamp = stamp
        return self._value

    def _stamp_now(self) -> tuple[tuple[int, int, int] | None, ...]:
        return tuple(_stamp_of(path) for path in self._paths)


class UserCredentials:
    """The user of a kubeconfig, or the service account of a pod."""

    def __init__(
        self,
        headers: CredentialSource[Headers],
        certificate: CredentialSource[KeyPair | None],
        now: Callable[[], datetime],
    ) -> None:
        self._headers = headers
        self._certificate = certificate
        self._now = now

    async def current(self) -> Authentication:
        return Authentication(self._headers.current(), self._certificate.current())

    async def rejected(self, used: Authentication) -> bool:
        return Authentication(self._headers.reread(), self._certificate.reread()) != used

    def explain(self) -> str:
        headers, certificate = self._headers, self._certificate
        shown: list[tuple[CredentialSource[object], datetime | None]] = []
        if pair := certificate.current():
            shown.append((certificate, expiry_of(pair)))
        if values := headers.current():
            shown.append((headers, expiry_of_token(values[0][1])))
        if not shown:
            return one_line(f"{headers.name}: add a token, a client certificate or an exec plugin")
        now = self._now()
        return one_line("; ".join(f"{each.name} {validity(expiry, now)}: {each.remedy}" for each, expiry in shown))


def no_token(where: str) -> CredentialSource[Headers]:
    return Fixed(f"no credentials for {where}", ())


def token(text: str, where: str) -> CredentialSource[Headers]:
    return Fixed(f"token of {where}", bearer(text, where))


def token_file(path: Path, where: str) -> CredentialSource[Headers]:
    name = f"token in {path} of {where}"
    return Rotating(name, lambda: bearer(read_file(path, where).decode(errors="replace"), name), path)


def password(username: str, secret: str, where: str) -> CredentialSource[Headers]:
    encoded = base64.b64encode(f"{username}:{secret}".encode()).decode()
    return Fixed(f"password of {where}", (("Authorization", f"Basic {encoded}"),))


def no_certificate() -> CredentialSource[KeyPair | None]:
    return Fixed("no client certificate", None)


def certificate(chain: Path | bytes, key: Path | bytes, where: str) -> CredentialSource[KeyPair | None]:
    files = [part for part in (chain, key) if isinstance(part, Path)]

    def read() -> KeyPair:
        return checked(KeyPair(where, content_of(chain, where), content_of(key, where)))

    if not files:
        return Fixed(f"client certificate of {where}", read())
    return Rotating(f"client certificate in {files[0]} of {where}", read, *files)


def bearer(text: str, where: str) -> Headers:
    text = text.strip()
    if not text:
        raise unusable(where, "the token is empty: get a new one")
    if not (text.isascii() and text.isprintable()) or " " in text:
        raise unusable(where, "the token has invalid characters: get a new one")
    return (("Authorization", f"Bearer {text}"),)


def checked(pair: KeyPair) -> KeyPair:
    check_pair(pair)
    return pair


def content_of(part: Path | bytes, where: str) -> bytes:
    return part if isinstance(part, bytes) else read_file(part, where)


def read_file(path: Path, where: str) -> bytes:
    try:
        return path.read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = getattr(error, "strerror", None) or "no such path"
        raise unusable(where, f"cannot read {path}: {reason}: correct its path or rights") from None


def validity(expiry: datetime | None, now: datetime) -> str:
    if expiry is None:
        return "was not accepted"
    verb = "expired" if expiry <= now else "was not accepted though valid until"
    return f"{verb} {expiry.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _stamp_of(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_ino, found.st_size


def expiry_of_token(header: str) -> datetime | None:
    """The expiry of a JWT, which most tokens are; None for others."""
    try:
        payload = header.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        return datetime.fromtimestamp(claims["exp"], UTC)
    except (IndexError, ValueError, TypeError, KeyError, OverflowError, OSError, RecursionError):
        return None
