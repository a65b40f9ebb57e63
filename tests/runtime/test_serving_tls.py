"""The TLS of a server: versions, ciphers and certificates, each of which changes while it runs."""

import ssl
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from tests.kube.certificates import a_pair, an_authority
from tests.runtime.clocks import ManualClock, settle
from tests.runtime.tls_clients import TLS10, TLS11, TLS12, TLS13, MountedSecret, a_client_context, write_pair
from virt_steward.kube.tls import KeyPair
from virt_steward.objects.tls_parameters import TlsParameters
from virt_steward.platform.tls_profile import PROFILES
from virt_steward.runtime.serving_tls import (
    CHECK_INTERVAL,
    LARGEST_FILE,
    CertificateFiles,
    ServingTls,
    server_context,
)

INTERMEDIATE = PROFILES["Intermediate"]
BOTH = ("ECDHE-ECDSA-AES128-SHA", "ECDHE-ECDSA-AES128-GCM-SHA256")
"""A cipher for TLS 1.1, and one for 1.2."""


class Shaken:
    """What both sides agreed on."""

    def __init__(self, server: ssl.SSLContext, client: ssl.SSLContext) -> None:
        """Raises SSLError if they cannot agree."""
        up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._theirs = client.wrap_bio(down, up, server_hostname="localhost")
        self._ours = server.wrap_bio(up, down, server_side=True)
        for _ in range(3):
            for side in (self._theirs, self._ours):
                try:
                    side.do_handshake()
                except ssl.SSLWantReadError:
                    continue
        self.version = self._theirs.version()
        cipher = self._theirs.cipher()
        assert cipher
        self.cipher = cipher[0]

    @property
    def serial(self) -> int:
        shown = self._theirs.getpeercert(binary_form=True)
        assert shown
        return x509.load_der_x509_certificate(shown).serial_number


def offers(parameters: TlsParameters, version: ssl.TLSVersion) -> bool:
    pair = a_pair()
    context = server_context(parameters, KeyPair("tests", pair.chain, pair.key), None)
    try:
        return bool(Shaken(context, a_client_context(version)).version)
    except ssl.SSLError:
        return False


@pytest.mark.parametrize(
    ("parameters", "offered"),
    [
        pytest.param(PROFILES["Old"], (TLS10, TLS11, TLS12, TLS13), id="old"),
        pytest.param(INTERMEDIATE, (TLS12, TLS13), id="intermediate"),
        pytest.param(PROFILES["Modern"], (TLS13,), id="modern"),
        pytest.param(TlsParameters("VersionTLS11", BOTH), (TLS11, TLS12, TLS13), id="custom"),
        pytest.param(TlsParameters("VersionTLS12", INTERMEDIATE.ciphers[:3]), (TLS13,), id="only-ciphers-of-1.3"),
        pytest.param(TlsParameters("VersionTLS10", ("DES-CBC3-SHA",)), (TLS13,), id="only-what-openssl-has-dropped"),
    ],
)
def test_server_context_offers_versions(parameters: TlsParameters, offered: tuple[ssl.TLSVersion, ...]) -> None:
    assert tuple(one for one in (TLS10, TLS11, TLS12, TLS13) if offers(parameters, one)) == offered


def test_server_context_offers_listed_ciphers_only() -> None:
    pair = a_pair()
    context = server_context(
        TlsParameters("VersionTLS12", ("ECDHE-ECDSA-AES256-GCM-SHA384",)), KeyPair("tests", pair.chain, pair.key), None
    )
    assert Shaken(context, a_client_context(TLS12)).cipher == "ECDHE-ECDSA-AES256-GCM-SHA384"
    with pytest.raises(ssl.SSLError):
        Shaken(context, a_client_context(TLS12, ciphers="ECDHE-ECDSA-AES128-GCM-SHA256"))


class Watched:
    """A server's TLS on a mounted Secret, and a clock."""

    def __init__(self, folder: Path, authority: Path | None = None, *, verifies_clients: bool = False) -> None:
        self.clock, self.registry = ManualClock(), CollectorRegistry()
        files = CertificateFiles(folder / "tls.crt", folder / "tls.key", authority)
        self.tls = ServingTls(files, INTERMEDIATE, self.clock, self.registry, verifies_clients=verifies_clients)

    async def look(self) -> None:
        """Time for another look at the files."""
        await self.tls.check_files()

    @property
    def serial(self) -> int:
        assert self.tls.context
        return Shaken(self.tls.context, a_client_context()).serial

    def value(self, name: str) -> float | None:
        return self.registry.get_sample_value(name)

    @property
    def is_stale(self) -> bool:
        return self.value("virt_steward_metrics_certificate_stale") == 1


async def test_serving_tls_takes_up_swapped_secret(tmp_path: Path) -> None:
    first, second = a_pair(), a_pair()
    secret, watched = MountedSecret(tmp_path / "tls", first), Watched(tmp_path / "tls")
    await watched.tls.start()
    try:
        assert watched.serial == first.certificate.serial_number
        before = watched.tls.context
        await watched.clock.advance(CHECK_INTERVAL)
        assert watched.tls.context is before
        secret.swap(second)
        await watched.clock.advance(CHECK_INTERVAL)
        while watched.tls.context is before:  # the files are read in a thread
            await settle()
        assert watched.serial == second.certificate.serial_number
        assert watched.value("certwatcher_read_certificate_total") == 2
        assert watched.tls.failure() is None
    finally:
        await watched.tls.stop()


@pytest.mark.parametrize(
    ("chain", "key", "says"),
    [
        pytest.param(None, a_pair().key, "the key does not match the certificate", id="mismatch"),
        pytest.param(b"garbage", b"garbage", "not PEM", id="garbage"),
        pytest.param(b"", b"", "not PEM", id="empty"),
        pytest.param(b"\0\xff" * 100, None, "not PEM", id="binary"),
        pytest.param(b"x" * (LARGEST_FILE + 1), None, "larger than", id="huge"),
    ],
)
async def test_serving_tls_keeps_certificate_if_new_one_is_unusable(
    tmp_path: Path, chain: bytes | None, key: bytes | None, says: str
) -> None:
    pair = a_pair()
    secret, watched = MountedSecret(tmp_path / "tls", pair), Watched(tmp_path / "tls")
    await watched.look()
    secret.swap_content(pair.chain if chain is None else chain, pair.key if key is None else key)
    with capture_logs() as logged:
        await watched.look()
        await watched.look()
    [told] = logged
    assert says in told["error"]
    assert told["consequence"] == "the previous certificate is served"
    assert watched.serial == pair.certificate.serial_number
    assert watched.is_stale
    assert watched.value("certwatcher_read_certificate_errors_total") == 1
    watched.tls.use_parameters(PROFILES["Modern"])
    assert watched.serial == pair.certificate.serial_number
    secret.swap(better := a_pair())
    await watched.look()
    assert watched.serial == better.certificate.serial_number
    assert not watched.is_stale


async def test_serving_tls_recovers_when_same_files_come_back(tmp_path: Path) -> None:
    MountedSecret(tmp_path / "tls")
    watched = Watched(tmp_path / "tls")
    await watched.look()
    (tmp_path / "tls" / "tls.key").rename(tmp_path / "elsewhere")
    await watched.look()
    assert watched.is_stale
    (tmp_path / "tls" / "tls.key").symlink_to("..data/tls.key")
    await watched.look()
    assert not watched.is_stale


async def test_serving_tls_waits_for_first_certificate(tmp_path: Path) -> None:
    watched = Watched(tmp_path / "tls")
    with capture_logs() as logged:
        await watched.look()
    assert [one["consequence"] for one in logged] == ["no connection is accepted until it is corrected"]
    assert watched.tls.context is None
    MountedSecret(tmp_path / "tls")
    await watched.look()
    assert watched.serial


async def test_serving_tls_changes_parameters_for_next_connection(tmp_path: Path) -> None:
    MountedSecret(tmp_path / "tls")
    watched = Watched(tmp_path / "tls")
    await watched.look()
    assert watched.tls.context
    assert Shaken(watched.tls.context, a_client_context(TLS12)).version == "TLSv1.2"
    watched.tls.use_parameters(PROFILES["Modern"])
    with pytest.raises(ssl.SSLError):
        Shaken(watched.tls.context, a_client_context(TLS12))
    assert Shaken(watched.tls.context, a_client_context(TLS13)).version == "TLSv1.3"


async def test_serving_tls_refuses_clients_without_authority(tmp_path: Path) -> None:
    MountedSecret(tmp_path / "tls")
    watched = Watched(tmp_path / "tls", verifies_clients=True)
    await watched.look()
    assert watched.tls.context is None
    watched.tls.use_client_authority(an_authority().chain)
    assert watched.tls.context
    before: Any = watched.tls.context
    watched.tls.use_client_authority(b"garbage")
    assert watched.tls.context is before
    assert before.verify_mode == ssl.CERT_REQUIRED
    watched.tls.use_client_authority(None)
    assert watched.tls.context is None


async def test_serving_tls_reads_client_authority_from_file(tmp_path: Path) -> None:
    MountedSecret(tmp_path / "tls")
    authority = tmp_path / "ca.crt"
    authority.write_bytes(an_authority().chain)
    watched = Watched(tmp_path / "tls", authority, verifies_clients=True)
    await watched.look()
    assert watched.tls.context
    known = a_client_context(TLS12, write_pair(tmp_path / "client", a_pair("prometheus")))
    assert Shaken(watched.tls.context, known).version == "TLSv1.2"
    authority.write_bytes(an_authority("another").chain)
    await watched.look()
    with pytest.raises(ssl.SSLError):
        Shaken(watched.tls.context, known)
