"""Which TLS profile is in force, and what it consists of."""

from typing import Any

import pytest

from virt_steward.platform.tls_profile import PROFILES, TlsProfile, parse_ciphers, resolve_profile

OLD, INTERMEDIATE, MODERN = {"type": "Old"}, {"type": "Intermediate"}, {"type": "Modern"}
GCM = "ECDHE-RSA-AES128-GCM-SHA256"


def a_custom(version: Any = "VersionTLS12", ciphers: Any = (GCM,)) -> dict[str, Any]:
    return {
        "type": "Custom",
        "custom": {"minTLSVersion": version, "ciphers": [*ciphers] if isinstance(ciphers, tuple) else ciphers},
    }


@pytest.mark.parametrize(
    ("of_hco", "of_api_server", "name", "source", "version"),
    [
        pytest.param(None, None, "Intermediate", "default", "VersionTLS12", id="neither"),
        pytest.param({}, {}, "Intermediate", "default", "VersionTLS12", id="both-empty"),
        pytest.param(None, MODERN, "Modern", "APIServer cluster", "VersionTLS13", id="api-server"),
        pytest.param(OLD, MODERN, "Old", "HyperConverged", "VersionTLS10", id="hyperconverged-first"),
        pytest.param(INTERMEDIATE, OLD, "Intermediate", "HyperConverged", "VersionTLS12", id="chosen-default"),
        pytest.param(a_custom("VersionTLS11"), OLD, "Custom", "HyperConverged", "VersionTLS11", id="custom"),
    ],
)
def test_resolve_profile_takes_first_that_is_set(
    of_hco: Any, of_api_server: Any, name: str, source: str, version: str
) -> None:
    found = resolve_profile(of_hco, of_api_server)
    assert (found.name, found.source, found.min_version, found.warning) == (name, source, version, "")


@pytest.mark.parametrize(
    ("value", "says"),
    [
        pytest.param("Modern", "type must be one of Old, Intermediate, Modern, Custom", id="text"),
        pytest.param(["Modern"], "not 'None'", id="list"),
        pytest.param({"type": "modern"}, "not 'modern'", id="lower-case"),
        pytest.param({"type": ["Modern"]}, "type must be one of", id="list-of-types"),
        pytest.param({"type": "x" * 10_000}, "not 'xxx", id="very-long"),
        pytest.param({"type": "Custom"}, "custom.minTLSVersion must be one of VersionTLS10", id="custom-without-body"),
        pytest.param({"type": "Custom", "custom": "all"}, "custom.minTLSVersion", id="custom-text"),
        pytest.param(a_custom("TLS1.2"), "custom.minTLSVersion", id="unknown-version"),
        pytest.param(a_custom(None), "custom.minTLSVersion", id="null-version"),
        pytest.param(a_custom([]), "custom.minTLSVersion", id="list-of-versions"),
        pytest.param(a_custom(ciphers=()), "no cipher that is supported", id="no-ciphers"),
        pytest.param(a_custom(ciphers=GCM), "no cipher that is supported", id="ciphers-as-text"),
        pytest.param(a_custom(ciphers=("ALL", "@SECLEVEL=0", "aNULL")), "no cipher", id="keywords-of-openssl"),
        pytest.param(a_custom(ciphers=(*["NULL-MD5"] * 100, GCM)), "no cipher", id="beyond-the-limit"),
    ],
)
def test_resolve_profile_falls_back_to_intermediate_with_warning(value: Any, says: str) -> None:
    found = resolve_profile(value, OLD)
    assert found == TlsProfile("Intermediate", "HyperConverged", PROFILES["Intermediate"], found.warning)
    assert says in found.warning
    assert "Intermediate applies until it is corrected" in found.warning
    assert len(found.warning) < 300


def test_resolve_profile_leaves_out_unknown_ciphers_with_warning() -> None:
    found = resolve_profile(a_custom(ciphers=(GCM, "ECDHE:ALL", "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", GCM)), None)
    assert found.parameters.ciphers == (GCM, "ECDHE-RSA-AES256-GCM-SHA384")
    assert "1 not supported, left out: 'ECDHE:ALL'" in found.warning


def test_profiles_are_those_of_openshift() -> None:
    assert {name: len(one.ciphers) for name, one in PROFILES.items()} == {"Old": 29, "Intermediate": 11, "Modern": 3}
    assert PROFILES["Modern"].ciphers == PROFILES["Old"].ciphers[:3] == PROFILES["Intermediate"].ciphers[:3]
    assert PROFILES["Old"].ciphers[-1] == "DES-CBC3-SHA"


def test_go_ciphers_are_those_that_go_can_choose() -> None:
    assert resolve_profile(MODERN, None).go_ciphers == ""
    assert resolve_profile(None, None).go_ciphers.split(",") == [
        "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
        "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
        "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
        "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
        "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
        "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
    ]


@pytest.mark.parametrize("names", [None, 7, {"a": 1}, [None, 3], "ALL"])
def test_parse_ciphers_knows_none_in_garbage(names: Any) -> None:
    assert parse_ciphers(names)[0] == ()
