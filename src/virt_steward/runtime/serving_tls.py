"""The TLS of a server whose certificate, versions, ciphers and client authority change while it runs.

Every new connection gets the SSL context of that moment; connections that are open keep theirs. What cannot be used,
such as a key that does not match its certificate, is reported, and the server goes on with what it had.
"""

from __future__ import annotations

import asyncio
import ssl
import warnings
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog
from prometheus_client import Counter, Gauge

from virt_steward.kube.errors import BadConfig, unusable
from virt_steward.kube.tls import KeyPair, load_pair
from virt_steward.objects.tls_parameters import TLS_VERSIONS
from virt_steward.runtime.supervision import essential, failure_of

if TYPE_CHECKING:
    from pathlib import Path

    from prometheus_client import CollectorRegistry

    from virt_steward.objects.tls_parameters import TlsParameters
    from virt_steward.runtime.clock import Clock

log = structlog.get_logger()

CHECK_INTERVAL = 5.0
"""Seconds between two looks at the certificate files."""
LARGEST_FILE = 256 * 1024
READS = 3
"""How often a pair is read until it is the same twice: it may be replaced while it is read."""

_VERSIONS = dict(
    zip(
        TLS_VERSIONS,
        (ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1, ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3),
        strict=True,
    )
)
TLS13_PREFIX = "TLS_"
"""OpenSSL names the ciphers of TLS 1.3 like this, and no others."""


@dataclass(frozen=True, slots=True)
class CertificateFiles:
    """PEM files, as a mounted Secret has them."""

    certificate: Path
    key: Path
    client_authority: Path | None = None
    """The authority of client certificates, if it comes from a file."""


@dataclass(frozen=True, slots=True)
class _FileContents:
    pair: KeyPair
    client_authority: bytes | None


class ServingTls:
    """Follows the files and settings of a server. `context` is None while there is nothing that it may serve with."""

    def __init__(
        self,
        files: CertificateFiles,
        parameters: TlsParameters,
        clock: Clock,
        registry: CollectorRegistry,
        *,
        verifies_clients: bool,
    ) -> None:
        self.context: ssl.SSLContext | None = None
        self._files = files
        self._parameters = parameters
        self._clock = clock
        self._verifies_clients = verifies_clients
        self._pair: KeyPair | None = None
        self._client_authority: bytes | None = None
        self._read: _FileContents | None = None
        self._problem = ""
        self._checking: asyncio.Task[None] | None = None
        self._reads = Counter("certwatcher_read_certificate", "Certificates read after a change.", registry=registry)
        self._errors = Counter(
            "certwatcher_read_certificate_errors", "Certificates that could not be used.", registry=registry
        )
        self._stale = Gauge(
            "virt_steward_metrics_certificate_stale",
            "1 while the certificate files cannot be used, so that the previous certificate is served.",
            registry=registry,
        )

    def use_parameters(self, parameters: TlsParameters) -> None:
        """From the next connection on."""
        if parameters != self._parameters:
            self._parameters = parameters
            log.info("TLS parameters changed", min_version=parameters.min_version, ciphers=len(parameters.ciphers))
            self._build()

    def use_client_authority(self, pem: bytes | None) -> None:
        """From the next connection on. None: there is none, so nobody can connect."""
        before, self._client_authority = self._client_authority, pem
        try:
            self._build()
        except BadConfig as error:
            log.warning("client authority not usable, keeping the previous one", error=str(error))
            self._client_authority = before

    async def start(self) -> None:
        """Read the files, and look at them again and again."""
        await self.check_files()
        self._checking = essential(self._keep_checking(), f"certificate {self._files.certificate}")

    async def stop(self) -> None:
        if self._checking:
            self._checking.cancel()
            await asyncio.gather(self._checking, return_exceptions=True)

    def failure(self) -> str | None:
        """Why a new certificate would not be noticed any more; None if it would."""
        return failure_of((self._checking,)) if self._checking else None

    async def _keep_checking(self) -> None:
        while True:
            await self._clock.sleep(CHECK_INTERVAL)
            await self.check_files()

    async def check_files(self) -> None:
        """Take up the files if they have changed. A problem is reported once."""
        try:
            found = await asyncio.to_thread(_read, self._files)
        except BadConfig as error:
            self._read = None
            self._note_problem(str(error))
            return
        if found == self._read:
            return
        self._reads.inc()
        self._read = found
        try:
            self._take(found)
        except BadConfig as error:
            self._note_problem(str(error))
            return
        self._problem = ""
        self._stale.set(0)
        log.info("certificate loaded", file=str(self._files.certificate))

    def _take(self, found: _FileContents) -> None:
        before = self._pair, self._client_authority
        self._pair = found.pair
        if self._files.client_authority:
            self._client_authority = found.client_authority
        try:
            self._build()
        except BadConfig:
            self._pair, self._client_authority = before
            raise

    def _build(self) -> None:
        """Raises BadConfig, and leaves the context as it is."""
        if self._pair is None:
            return
        if self._verifies_clients and self._client_authority is None:
            self.context = None
            return
        self.context = server_context(self._parameters, self._pair, self._client_authority)

    def _note_problem(self, problem: str) -> None:
        self._stale.set(1)
        if problem != self._problem:
            self._errors.inc()
            kept = (
                "the previous certificate is served"
                if self._pair
                else "no connection is accepted until it is corrected"
            )
            log.warning("certificate not usable", error=problem, consequence=kept)
        self._problem = problem


def server_context(parameters: TlsParameters, pair: KeyPair, client_authority: bytes | None) -> ssl.SSLContext:
    """With a client authority, only clients with a certificate from it can connect. Raises BadConfig."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.options |= ssl.OP_NO_RENEGOTIATION
    _limit(context, parameters)
    load_pair(context, pair)
    if client_authority is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        try:
            context.load_verify_locations(cadata=client_authority.decode("ascii", "ignore"))
        except (ssl.SSLError, ValueError):
            raise unusable("client authority", "not a PEM certificate: correct it") from None
    return context


def _limit(context: ssl.SSLContext, parameters: TlsParameters) -> None:
    version = _VERSIONS[parameters.min_version]
    older = [name for name in parameters.ciphers if not name.startswith(TLS13_PREFIX)]
    # OpenSSL offers versions below 1.2 on its lowest security level only.
    level = ["@SECLEVEL=0"] if version < ssl.TLSVersion.TLSv1_2 else []
    try:
        context.set_ciphers(":".join([*older, *level]))
    except ssl.SSLError:  # it knows none of them, so no version that needs one can be offered
        version = ssl.TLSVersion.TLSv1_3
    with warnings.catch_warnings(), suppress(ValueError):  # a build without such old versions keeps its own minimum
        warnings.simplefilter("ignore", DeprecationWarning)  # of TLS 1.0 and 1.1, which an admin asked for
        context.minimum_version = version


def _read(files: CertificateFiles) -> _FileContents:
    """Read until it is the same twice. Raises BadConfig."""
    found = _read_once(files)
    for _ in range(READS):
        again = _read_once(files)
        if again == found:
            break
        found = again
    return found


def _read_once(files: CertificateFiles) -> _FileContents:
    pair = KeyPair(f"certificate {files.certificate}", _content(files.certificate), _content(files.key))
    return _FileContents(pair, _content(files.client_authority) if files.client_authority else None)


def _content(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise unusable(str(path), f"{error.strerror}: mount a Secret with this file") from None
    if len(content) > LARGEST_FILE:
        raise unusable(str(path), f"larger than {LARGEST_FILE} bytes: no certificate or key is")
    return content
