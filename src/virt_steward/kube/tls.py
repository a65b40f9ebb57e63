"""What we trust of a server, what we show of ourselves, and the SSL context made of both."""

from __future__ import annotations

import os
import ssl
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from virt_steward.kube.errors import unusable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Trust:
    """Who may vouch for a server."""

    origin: str
    """Where this was said, for people."""
    authority: Path | bytes | None = field(default=None, repr=False)
    """A file, read anew for each context, or PEM data; the system's authorities when there is none."""
    verify: bool = True


@dataclass(frozen=True, slots=True)
class ClientCertificate:
    """A certificate and its key, both PEM. A rotated one is another record."""

    origin: str
    """Whose this is and where it stands, for people."""
    chain: bytes = field(repr=False)
    key: bytes = field(repr=False)


def ssl_context(trust: Trust, certificate: ClientCertificate | None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if trust.verify:
        _trust(context, trust)
    else:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if certificate:
        _show(context, certificate)
    return context


def check_authority(trust: Trust) -> None:
    """Refuse an authority that is given but cannot be read or is no PEM."""
    if trust.authority is not None:
        ssl_context(trust, None)


def check_pair(certificate: ClientCertificate) -> None:
    """Refuse a certificate and key that are no PEM or do not belong together."""
    _show(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), certificate)


def expiry_of(certificate: ClientCertificate) -> datetime | None:
    from cryptography import x509  # noqa: PLC0415 - megabytes that only an explanation needs

    try:
        return x509.load_pem_x509_certificate(certificate.chain).not_valid_after_utc
    except ValueError:  # OpenSSL takes certificates that a strict reader does not
        return None


def _trust(context: ssl.SSLContext, trust: Trust) -> None:
    # As in kubectl, whatever certificate is given is trusted, an intermediate or a server's own too.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    try:
        match trust.authority:
            case None:
                context.load_default_certs()
            case bytes(pem):
                context.load_verify_locations(cadata=pem.decode("ascii", "ignore"))
            case path:
                context.load_verify_locations(cafile=path)
    except (ssl.SSLError, ValueError):
        raise unusable(trust.origin, "it is not a PEM certificate: get a new kubeconfig") from None
    except OSError as error:
        problem = f"cannot read {trust.authority!s}: {error.strerror}: correct its path or rights"
        raise unusable(trust.origin, problem) from None


def _show(context: ssl.SSLContext, certificate: ClientCertificate) -> None:
    try:
        with _as_path(certificate.chain + b"\n" + certificate.key) as path:
            # Without a password OpenSSL would ask the terminal for that of an encrypted key.
            context.load_cert_chain(path, password="")
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            problem = "the key does not belong to the certificate: get both anew"
        else:
            problem = (
                "certificate or key is not PEM, or the key is encrypted: get both anew, the key without a password"
            )
        raise unusable(certificate.origin, problem) from None


@contextmanager
def _as_path(pem: bytes) -> Iterator[str]:
    """OpenSSL takes a client certificate by path only; where memory has one, the key never reaches a disk."""
    if sys.platform == "linux":
        with os.fdopen(os.memfd_create("client-certificate"), "wb", buffering=0) as memory:
            memory.write(pem)
            yield f"/proc/self/fd/{memory.fileno()}"
    else:
        with tempfile.NamedTemporaryFile(buffering=0) as file:  # 0600, and gone with the block
            file.write(pem)
            yield file.name
