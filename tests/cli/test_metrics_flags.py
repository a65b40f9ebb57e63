"""Options of /metrics: what is refused, and what follows from them."""

from pathlib import Path
from typing import Any

import pytest

from virt_steward.cli.metrics_flags import CertificateFlags, options, tls_parameters
from virt_steward.platform.tls_profile import PROFILES
from virt_steward.runtime.metrics_auth import MetricsAuth
from virt_steward.settings import BadSetting, MetricsSettings

MOUNTED = CertificateFlags("/tls", "tls.crt", "tls.key", None)


def test_metrics_are_plain_by_default() -> None:
    assert options(MOUNTED, MetricsAuth.NONE, "ann", None, secure=False) == MetricsSettings()


def test_secure_metrics_name_files() -> None:
    found = options(MOUNTED, MetricsAuth.TOKEN, "ann", None, secure=True)
    assert found.files
    assert (found.files.certificate, found.files.key) == (Path("/tls/tls.crt"), Path("/tls/tls.key"))
    assert (found.auth, found.tls) == (MetricsAuth.TOKEN, None)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        pytest.param({"auth": MetricsAuth.TOKEN, "secure": False}, "add --metrics-secure", id="token-in-plain"),
        pytest.param({"path": ""}, "--metrics-cert-path DIR", id="no-certificate"),
        pytest.param({"names": "ann,"}, "a name is empty", id="empty-name"),
        pytest.param({"authority": "/ca.crt"}, "only with --metrics-auth client-certificate", id="idle-authority"),
    ],
)
def test_metrics_options_refuse(given: dict[str, Any], says: str) -> None:
    flags = CertificateFlags(given.get("path", "/tls"), "tls.crt", "tls.key", given.get("authority"))
    with pytest.raises(BadSetting, match=says):
        options(
            flags,
            given.get("auth", MetricsAuth.NONE),
            given.get("names", "ann"),
            None,
            secure=given.get("secure", True),
        )


@pytest.mark.parametrize(
    ("version", "ciphers", "expected"),
    [
        (None, None, None),
        ("VersionTLS13", None, ("VersionTLS13", PROFILES["Intermediate"].ciphers)),
        (None, "ECDHE-RSA-AES128-GCM-SHA256", ("VersionTLS12", ("ECDHE-RSA-AES128-GCM-SHA256",))),
        (None, "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", ("VersionTLS12", ("ECDHE-RSA-AES128-GCM-SHA256",))),
    ],
)
def test_tls_parameters_of_options(version: str | None, ciphers: str | None, expected: tuple[str, ...] | None) -> None:
    found = tls_parameters(version, ciphers)
    assert ((found.min_version, found.ciphers) if found else None) == expected


@pytest.mark.parametrize(
    ("version", "ciphers"), [("TLS1.2", None), ("", None), (None, "ALL"), (None, ""), (None, "a,b")]
)
def test_tls_parameters_refuse_unknown_names(version: str | None, ciphers: str | None) -> None:
    with pytest.raises(BadSetting, match=r"must be one of VersionTLS10|unknown cipher"):
        tls_parameters(version, ciphers)
