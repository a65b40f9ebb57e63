"""The versions and ciphers of TLS, as Go and OpenShift name them."""

from __future__ import annotations

from dataclasses import dataclass

TLS_VERSIONS = ("VersionTLS10", "VersionTLS11", "VersionTLS12", "VersionTLS13")
"""Lowest first."""


@dataclass(frozen=True, slots=True)
class TlsParameters:
    """The lowest version, and the ciphers that a client may choose."""

    min_version: str
    """One of TLS_VERSIONS."""
    ciphers: tuple[str, ...]
    """By their names in OpenSSL. Those of TLS 1.3 are always all on: neither Python nor Go lets a server choose."""
