"""The TLS security profile of the platform: the lowest version and the ciphers, by the profiles of OpenShift.

That of the HyperConverged comes first, then that of the APIServer `cluster`, then Intermediate. What makes no sense
counts as Intermediate, with a warning: a profile must neither stop a server nor open it wider than by default.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from virt_steward.objects.identity import Kind, Ref
from virt_steward.objects.tls_parameters import TLS_VERSIONS, TlsParameters
from virt_steward.platform.topology import CLUSTER

if TYPE_CHECKING:
    from collections.abc import Mapping

API_SERVER = Ref(Kind("config.openshift.io", "APIServer", "apiservers"), CLUSTER)
HYPERCONVERGED_PATH = "/spec/security/tlsSecurityProfile"
API_SERVER_PATH = "/spec/tlsSecurityProfile"

_TLS13 = ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256")
_GO_NAMES = {
    "ECDHE-ECDSA-AES128-GCM-SHA256": "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "ECDHE-RSA-AES128-GCM-SHA256": "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "ECDHE-ECDSA-AES256-GCM-SHA384": "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "ECDHE-RSA-AES256-GCM-SHA384": "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    "ECDHE-ECDSA-CHACHA20-POLY1305": "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
    "ECDHE-RSA-CHACHA20-POLY1305": "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
    "ECDHE-ECDSA-AES128-SHA256": "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256",
    "ECDHE-RSA-AES128-SHA256": "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256",
    "ECDHE-ECDSA-AES128-SHA": "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA",
    "ECDHE-RSA-AES128-SHA": "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA",
    "ECDHE-ECDSA-AES256-SHA": "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
    "ECDHE-RSA-AES256-SHA": "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",
    "AES128-GCM-SHA256": "TLS_RSA_WITH_AES_128_GCM_SHA256",
    "AES256-GCM-SHA384": "TLS_RSA_WITH_AES_256_GCM_SHA384",
    "AES128-SHA256": "TLS_RSA_WITH_AES_128_CBC_SHA256",
    "AES128-SHA": "TLS_RSA_WITH_AES_128_CBC_SHA",
    "AES256-SHA": "TLS_RSA_WITH_AES_256_CBC_SHA",
    "DES-CBC3-SHA": "TLS_RSA_WITH_3DES_EDE_CBC_SHA",
}
"""The ciphers that a Go program can choose below TLS 1.3, by their names in OpenSSL."""
_OPENSSL_NAMES = {go: openssl for openssl, go in _GO_NAMES.items()}
_INTERMEDIATE = (
    *_TLS13,
    "ECDHE-ECDSA-AES128-GCM-SHA256",
    "ECDHE-RSA-AES128-GCM-SHA256",
    "ECDHE-ECDSA-AES256-GCM-SHA384",
    "ECDHE-RSA-AES256-GCM-SHA384",
    "ECDHE-ECDSA-CHACHA20-POLY1305",
    "ECDHE-RSA-CHACHA20-POLY1305",
    "DHE-RSA-AES128-GCM-SHA256",
    "DHE-RSA-AES256-GCM-SHA384",
)
_OLD = (
    *_INTERMEDIATE,
    "DHE-RSA-CHACHA20-POLY1305",
    "ECDHE-ECDSA-AES128-SHA256",
    "ECDHE-RSA-AES128-SHA256",
    "ECDHE-ECDSA-AES128-SHA",
    "ECDHE-RSA-AES128-SHA",
    "ECDHE-ECDSA-AES256-SHA384",
    "ECDHE-RSA-AES256-SHA384",
    "ECDHE-ECDSA-AES256-SHA",
    "ECDHE-RSA-AES256-SHA",
    "DHE-RSA-AES128-SHA256",
    "DHE-RSA-AES256-SHA256",
    "AES128-GCM-SHA256",
    "AES256-GCM-SHA384",
    "AES128-SHA256",
    "AES256-SHA256",
    "AES128-SHA",
    "AES256-SHA",
    "DES-CBC3-SHA",
)

INTERMEDIATE, CUSTOM, DEFAULT = "Intermediate", "Custom", "default"
PROFILES: Mapping[str, TlsParameters] = {
    "Old": TlsParameters("VersionTLS10", _OLD),
    INTERMEDIATE: TlsParameters("VersionTLS12", _INTERMEDIATE),
    "Modern": TlsParameters("VersionTLS13", _TLS13),
}
CIPHERS = frozenset(_OLD)
"""The ciphers that any profile of OpenShift has. A custom profile may have others, which we leave out."""
MOST_CIPHERS = 100
"""Entries of a custom profile that are read."""


@dataclass(frozen=True, slots=True)
class TlsProfile:
    """The profile in force, and where it comes from."""

    name: str
    source: str
    """`HyperConverged`, `APIServer cluster` or `default`."""
    parameters: TlsParameters
    warning: str = ""
    """What of it cannot be used, and what is used instead."""

    @property
    def is_set(self) -> bool:
        """Whether an admin chose it."""
        return self.source != DEFAULT

    @property
    def min_version(self) -> str:
        return self.parameters.min_version

    @property
    def go_ciphers(self) -> str:
        """As Go programs take them: their names there, with commas. Those of TLS 1.3 cannot be chosen."""
        return ",".join(_GO_NAMES[name] for name in self.parameters.ciphers if name in _GO_NAMES)


def resolve_profile(of_hco: Any, of_api_server: Any) -> TlsProfile:
    """The profile in force, from the values of `tlsSecurityProfile` of both objects. None stands for absent."""
    for source, value in (("HyperConverged", of_hco), ("APIServer cluster", of_api_server)):
        if value:
            return _read(source, value)
    return TlsProfile(INTERMEDIATE, DEFAULT, PROFILES[INTERMEDIATE])


def parse_ciphers(names: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The known ciphers of a list by their names in OpenSSL, each once; and what of the list is unknown."""
    listed = [str(name) for name in names[:MOST_CIPHERS]] if isinstance(names, list | tuple) else []
    translated = [_OPENSSL_NAMES.get(name, name) for name in listed]
    known = tuple(dict.fromkeys(name for name in translated if name in CIPHERS))
    return known, tuple(dict.fromkeys(name for name in translated if name not in CIPHERS))


def _read(source: str, value: Any) -> TlsProfile:
    name = value.get("type") if isinstance(value, dict) else None
    if name == CUSTOM:
        return _custom(source, value.get("custom"))
    if isinstance(name, str) and name in PROFILES:
        return TlsProfile(name, source, PROFILES[name])
    choices = ", ".join((*PROFILES, CUSTOM))
    return _intermediate(source, f"type must be one of {choices}, not {str(name)[:60]!r}")


def _custom(source: str, custom: Any) -> TlsProfile:
    version = custom.get("minTLSVersion") if isinstance(custom, dict) else None
    known, unknown = parse_ciphers(custom.get("ciphers") if isinstance(custom, dict) else None)
    if not isinstance(version, str) or version not in TLS_VERSIONS:
        return _intermediate(source, f"custom.minTLSVersion must be one of {', '.join(TLS_VERSIONS)}")
    if not known:
        return _intermediate(source, "custom.ciphers has no cipher that is supported")
    dropped = f"custom.ciphers: {len(unknown)} not supported, left out: {unknown[0][:60]!r}" if unknown else ""
    warning = f"tlsSecurityProfile of {source}: {dropped}" if dropped else ""
    return TlsProfile(CUSTOM, source, TlsParameters(version, known), warning)


def _intermediate(source: str, problem: str) -> TlsProfile:
    warning = f"tlsSecurityProfile of {source} is invalid ({problem}); {INTERMEDIATE} applies until it is corrected"
    return TlsProfile(INTERMEDIATE, source, PROFILES[INTERMEDIATE], warning)
