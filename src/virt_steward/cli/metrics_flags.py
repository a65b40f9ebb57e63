"""Options of /metrics: its certificate, who may read it, versions and ciphers. Named as in controller-runtime."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from virt_steward.objects.tls_parameters import TLS_VERSIONS, TlsParameters
from virt_steward.platform.tls_profile import INTERMEDIATE, PROFILES, parse_ciphers
from virt_steward.runtime.metrics_auth import CLIENT_AUTHORITY, OPENSHIFT_PROMETHEUS, MetricsAuth
from virt_steward.runtime.serving_tls import CertificateFiles
from virt_steward.settings import BadSetting, MetricsSettings, names_in

SecureOption = Annotated[bool, typer.Option(help="Serve /metrics over TLS.")]
CertPathOption = Annotated[
    str,
    typer.Option("--metrics-cert-path", metavar="DIR", help="Folder of the certificate, such as a mounted Secret."),
]
CertNameOption = Annotated[
    str, typer.Option("--metrics-cert-name", metavar="NAME", help="File name of the certificate in that folder.")
]
CertKeyOption = Annotated[
    str, typer.Option("--metrics-cert-key", metavar="NAME", help="File name of its key in that folder.")
]
AuthOption = Annotated[
    MetricsAuth,
    typer.Option(
        "--metrics-auth",
        help="Who may read /metrics. token: who may get the nonResourceURL /metrics. client-certificate: who has one "
        "with an accepted name.",
    ),
]
ClientCaOption = Annotated[
    str | None,
    typer.Option(
        "--metrics-client-ca-file",
        metavar="FILE",
        help=f"Authority of client certificates, instead of that in the ConfigMap {CLIENT_AUTHORITY}.",
    ),
]
ClientNamesOption = Annotated[
    str,
    typer.Option(
        "--metrics-client-names", metavar="NAME[,NAME]", help="Common names of client certificates that are accepted."
    ),
]
CLIENT_NAMES = OPENSHIFT_PROMETHEUS
MinVersionOption = Annotated[
    str | None,
    typer.Option(
        "--tls-min-version",
        metavar="VERSION",
        help=f"Lowest version of TLS, one of {', '.join(TLS_VERSIONS)}. Without this and the next option, the TLS "
        f"profile of the platform applies where the autopilot runs, else {INTERMEDIATE}.",
    ),
]
CiphersOption = Annotated[
    str | None,
    typer.Option(
        "--tls-cipher-suites", metavar="NAME[,NAME]", help="Ciphers below TLS 1.3, by their names in OpenSSL or Go."
    ),
]


@dataclass(frozen=True, slots=True)
class CertificateFlags:
    """The flags about files, as they were given."""

    path: str
    name: str
    key: str
    client_authority: str | None


def options(
    certificate: CertificateFlags, auth: MetricsAuth, client_names: str, tls: TlsParameters | None, *, secure: bool
) -> MetricsSettings:
    """Raises BadSetting where a token would be sent unencrypted, or what TLS needs is missing."""
    names = names_in(client_names)
    if not all(names):
        raise BadSetting("--metrics-client-names: a name is empty")
    if not secure:
        if auth is not MetricsAuth.NONE:
            raise BadSetting(f"--metrics-auth {auth}: only over TLS; add --metrics-secure and --metrics-cert-path DIR")
        return MetricsSettings()
    if not certificate.path:
        raise BadSetting("--metrics-secure: name the folder of the certificate by --metrics-cert-path DIR")
    authority = certificate.client_authority
    if authority and auth is not MetricsAuth.CLIENT_CERTIFICATE:
        raise BadSetting("--metrics-client-ca-file: only with --metrics-auth client-certificate")
    folder = Path(certificate.path)
    files = CertificateFiles(
        folder / certificate.name, folder / certificate.key, Path(authority) if authority else None
    )
    return MetricsSettings(files, auth, names, tls)


def tls_parameters(min_version: str | None, ciphers: str | None) -> TlsParameters | None:
    """None if neither is given. Raises BadSetting for what is not known."""
    if min_version is None and ciphers is None:
        return None
    default = PROFILES[INTERMEDIATE]
    version = default.min_version if min_version is None else min_version
    if version not in TLS_VERSIONS:
        raise BadSetting(f"--tls-min-version {version}: must be one of {', '.join(TLS_VERSIONS)}")
    if ciphers is None:
        return TlsParameters(version, default.ciphers)
    known, unknown = parse_ciphers(names_in(ciphers))
    if unknown:
        raise BadSetting(f"--tls-cipher-suites: unknown cipher {unknown[0]!r}; `openssl ciphers` lists the names")
    return TlsParameters(version, known)
