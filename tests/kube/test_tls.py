import asyncio
import contextlib
import re
import ssl
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption

from tests.kube.certificates import Pair, a_pair, an_authority
from virt_steward.kube.errors import BadConfig
from virt_steward.kube.tls import KeyPair, Trust, ssl_context

LAST_YEAR = datetime.now(UTC) - timedelta(days=300)


def trust_in(authority: Pair) -> Trust:
    return Trust("authority of cluster here", authority.chain)


def shown(pair: Pair) -> KeyPair:
    return KeyPair("user admin", pair.chain, pair.key)


@contextlib.asynccontextmanager
async def a_server(pair: Pair, tmp_path: Path) -> AsyncIterator[int]:
    """Answers each connection with the common name of the client's certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    (tmp_path / "server.pem").write_bytes(pair.chain + pair.key)
    context.load_cert_chain(tmp_path / "server.pem")
    context.load_verify_locations(cadata=an_authority().chain.decode())
    context.verify_mode = ssl.CERT_OPTIONAL

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = writer.get_extra_info("peercert")
        writer.write(peer["subject"][0][0][1].encode() if peer else b"nobody")
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()

    async with await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context) as server:
        yield server.sockets[0].getsockname()[1]


async def greeting(port: int, context: ssl.SSLContext) -> str:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname="localhost")
    try:
        return (await reader.read()).decode()
    finally:
        writer.close()
        await writer.wait_closed()


async def test_ssl_context_trusts_authority_and_sends_certificate(tmp_path: Path) -> None:
    async with a_server(a_pair(), tmp_path) as port:
        context = ssl_context(trust_in(an_authority()), shown(a_pair("admin")))
        assert await greeting(port, context) == "admin"


async def test_ssl_context_reads_authority_from_file(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_bytes(an_authority().chain)
    async with a_server(a_pair(), tmp_path) as port:
        assert await greeting(port, ssl_context(Trust("here", tmp_path / "ca.crt"), None)) == "nobody"


async def test_ssl_context_trusts_intermediate(tmp_path: Path) -> None:
    intermediate = a_pair("intermediate", authority=True)
    async with a_server(a_pair(signed_by=intermediate), tmp_path) as port:
        assert await greeting(port, ssl_context(trust_in(intermediate), None)) == "nobody"


@pytest.mark.parametrize(
    ("server", "trust", "reason"),
    [
        pytest.param(a_pair(), trust_in(an_authority("other")), "self-signed certificate in", id="signed by another"),
        pytest.param(a_pair(), Trust("here"), "self-signed certificate in", id="unknown to this system"),
        pytest.param(a_pair("elsewhere"), trust_in(an_authority()), "Hostname mismatch", id="with another name"),
        pytest.param(a_pair(expires=LAST_YEAR), trust_in(an_authority()), "expired", id="that has expired"),
    ],
)
async def test_ssl_context_refuses_untrusted_server(server: Pair, trust: Trust, reason: str, tmp_path: Path) -> None:
    async with a_server(server, tmp_path) as port:
        with pytest.raises(ssl.SSLCertVerificationError, match=reason):
            await greeting(port, ssl_context(trust, None))


async def test_ssl_context_skips_verification_on_request(tmp_path: Path) -> None:
    async with a_server(a_pair("elsewhere", expires=LAST_YEAR), tmp_path) as port:
        assert await greeting(port, ssl_context(Trust("here", verify=False), None)) == "nobody"


def test_ssl_context_loads_only_given_authority() -> None:
    assert ssl_context(trust_in(an_authority()), None).cert_store_stats()["x509"] == 1


@pytest.mark.parametrize(
    ("chain", "key", "line"),
    [
        pytest.param(
            a_pair().chain, a_pair().key, "user admin: the key does not match the certificate", id="of two pairs"
        ),
        pytest.param(b"x", b"y", "user admin: certificate or key is not PEM", id="that are no PEM"),
        pytest.param(b"", b"", "user admin: certificate or key is not PEM", id="that are empty"),
        pytest.param(
            (locked := a_pair()).chain,
            locked.key_locked_with(BestAvailableEncryption(b"password")),
            "or the key is encrypted",
            id="locked with a password",
        ),
    ],
)
def test_check_pair_refuses_invalid_pair(chain: bytes, key: bytes, line: str) -> None:
    with pytest.raises(BadConfig, match=re.escape(line)):
        ssl_context(Trust("here"), KeyPair("user admin", chain, key))


@pytest.mark.parametrize(
    ("authority", "line"),
    [
        pytest.param(b"garbage", "here: not a PEM certificate", id="data that is no PEM"),
        pytest.param(b"\xff\x00", "here: not a PEM certificate", id="data that is no text"),
        pytest.param(b"", "here: not a PEM certificate", id="empty data"),
        pytest.param(Path(__file__), "here: not a PEM certificate", id="a file that is no PEM"),
        pytest.param(Path("/nowhere/ca.crt"), "here: cannot read /nowhere/ca.crt: No such file", id="a missing file"),
        pytest.param(Path("a\0b"), "here: not a PEM certificate", id="an impossible path"),
    ],
)
def test_check_authority_refuses_invalid_authority(authority: bytes | Path, line: str) -> None:
    with pytest.raises(BadConfig, match=re.escape(line)):
        ssl_context(Trust("here", authority), None)


def test_ssl_context_leaves_no_key_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    before = {*Path("/proc/self/fd").iterdir()}
    ssl_context(Trust("here"), shown(a_pair()))
    assert {*Path("/proc/self/fd").iterdir()} == before
    assert list(tmp_path.iterdir()) == []


def test_client_certificate_hides_key() -> None:
    pair = a_pair()
    assert pair.key.decode()[40:80] not in repr(shown(pair))
    assert "PRIVATE" not in repr(shown(pair))
