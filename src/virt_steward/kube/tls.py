"""Trusted authorities, pairs of certificate and key, and the SSL context of a client made from both."""

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
    """The authority that must have signed a server's certificate."""

    origin: str
    """Where this is configured, for messages."""
    authority: Path | bytes | None = field(default=None, repr=False)
    """A file, read for each new context, or PEM data; None: the system's authorities."""
    verify: bool = True


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate and its key, both PEM."""

    origin: str
    """Whose this is, and where it is configured, for messages."""
    chain: bytes = field(repr=False)
    key: bytes = field(repr=False)


def ssl_context(trust: Trust, certificate: KeyPair | None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if trust.verify:
        _trust(context, trust)
    else:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if certificate:
        load_pair(context, certificate)
    return context


def check_authority(trust: Trust) -> None:
    """Refuse an authority that cannot be read or is not PEM."""
    if trust.authority is not None:
        ssl_context(trust, None)


def check_pair(certificate: KeyPair) -> None:
    """Refuse a certificate and a key that are not PEM or do not match."""
    load_pair(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), certificate)


def expiry_of(certificate: KeyPair) -> datetime | None:
    from cryptography import x509  # noqa: PLC0415 - large, and only needed for error messages

    try:
        return x509.load_pem_x509_certificate(certificate.chain).not_valid_after_utc
    except ValueError:  # OpenSSL accepts certificates that this library does not
        return None


def _trust(context: ssl.SSLContext, trust: Trust) -> None:
    # As in kubectl, any given certificate is trusted, also an intermediate or the server's own.
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
        raise unusable(trust.origin, "not a PEM certificate: get a new kubeconfig") from None
    except OSError as error:
        problem = f"cannot read {trust.authority!s}: {error.strerror}: correct its path or rights"
        raise unusable(trust.origin, problem) from None


def load_pair(context: ssl.SSLContext, certificate: KeyPair) -> None:
    """Have the context show this certificate. Raises BadConfig."""
    try:
        with _as_path(certificate.chain + b"\n" + certificate.key) as path:
            # Without a password, OpenSSL would prompt for that of an encrypted key.
            context.load_cert_chain(path, password="")
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            problem = "the key does not match the certificate: get new ones"
        else:
            problem = "certificate or key is not PEM, or the key is encrypted: get new ones, the key without a password"
        raise unusable(certificate.origin, problem) from None


@contextmanager
def _as_path(pem: bytes) -> Iterator[str]:
    """A path to the PEM: OpenSSL takes no other form. On Linux it is in memory, so the key is not written to disk."""
    if sys.platform == "linux":
        with os.fdopen(os.memfd_create("certificate"), "wb", buffering=0) as memory:
            memory.write(pem)
            yield f"/proc/self/fd/{memory.fileno()}"
    else:
        with tempfile.NamedTemporaryFile(buffering=0) as file:  # 0600, and gone with the block
            file.write(pem)
            yield file.name
