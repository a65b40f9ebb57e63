import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.kube.certificates import a_pair
from tests.kube.kubeconfigs import SECRET, a_kubeconfig, b64, written
from virt_steward.kube.credentials import Authentication, Credentials
from virt_steward.kube.errors import BadConfig
from virt_steward.kube.kubeconfig import load_kubeconfig

NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)


def credentials_for(tmp_path: Path, user: dict[str, object]) -> Credentials:
    path = written(tmp_path / "config", a_kubeconfig(user=user))
    return load_kubeconfig(path, env={}, now=lambda: NOON).credentials


def replace(path: Path, content: str | bytes) -> None:
    """As the kubelet and careful writers do: a new file takes the old one's name."""
    fresh = path.with_suffix(".new")
    fresh.write_bytes(content if isinstance(content, bytes) else content.encode())
    fresh.rename(path)


def a_jwt(expires: datetime) -> str:
    payload = json.dumps({"exp": int(expires.timestamp())})
    return f"e30.{b64(payload).rstrip('=').replace('+', '-').replace('/', '_')}.c2ln"


async def sent(credentials: Credentials) -> str:
    return dict((await credentials.current()).headers)["Authorization"]


@pytest.mark.parametrize(
    ("user", "header"),
    [
        pytest.param({"token": "abc"}, "Bearer abc", id="a token"),
        pytest.param({"token": "abc\n"}, "Bearer abc", id="a token with a line end"),
        pytest.param({"username": "u", "password": "p"}, f"Basic {b64('u:p')}", id="a username and password"),
        pytest.param({"username": "u"}, f"Basic {b64('u:')}", id="a username alone"),
        pytest.param({"tokenFile": "token", "token": "no"}, "Bearer from-file", id="a token file, which wins"),
    ],
)
async def test_credentials_set_authorization_header(user: dict[str, object], header: str, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("from-file\n")
    assert await sent(credentials_for(tmp_path, user)) == header


async def test_credentials_explain_when_absent(tmp_path: Path) -> None:
    credentials = credentials_for(tmp_path, {})
    assert await credentials.current() == Authentication()
    assert credentials.explain() == (
        f"no credentials for user admin in {tmp_path}/config: add a token, a client certificate or an exec plugin"
    )


async def test_token_file_is_reread_when_replaced(tmp_path: Path) -> None:
    replace(tmp_path / "token", "one")
    credentials = credentials_for(tmp_path, {"tokenFile": "token"})
    replace(tmp_path / "token", "two")
    assert await sent(credentials) == "Bearer two"


@pytest.mark.parametrize("content", [pytest.param("", id="empty"), pytest.param(None, id="missing")])
async def test_token_file_keeps_last_valid_token(content: str | None, tmp_path: Path) -> None:
    replace(tmp_path / "token", "one")
    credentials = credentials_for(tmp_path, {"tokenFile": "token"})
    (tmp_path / "token").unlink()
    if content is not None:
        replace(tmp_path / "token", content)
    assert await sent(credentials) == "Bearer one"
    replace(tmp_path / "token", "two")
    assert await sent(credentials) == "Bearer two"


async def test_token_file_is_reread_after_401(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("one")
    credentials = credentials_for(tmp_path, {"tokenFile": "token"})
    used, before = await credentials.current(), token.stat()
    token.write_text("two")
    os.utime(token, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert await sent(credentials) == "Bearer one"
    assert await credentials.rejected(used)
    assert await sent(credentials) == "Bearer two"


@pytest.mark.parametrize(
    "user", [pytest.param({"token": "abc"}, id="fixed"), pytest.param({"tokenFile": "token"}, id="in a file")]
)
async def test_rejected_is_false_for_unchanged_token(user: dict[str, object], tmp_path: Path) -> None:
    (tmp_path / "token").write_text("one")
    credentials = credentials_for(tmp_path, user)
    assert not await credentials.rejected(await credentials.current())


async def test_certificate_rotates_with_its_key(tmp_path: Path) -> None:
    old, new = a_pair(), a_pair()
    replace(tmp_path / "tls.crt", old.chain)
    replace(tmp_path / "tls.key", old.key)
    credentials = credentials_for(tmp_path, {"client-certificate": "tls.crt", "client-key": "tls.key"})
    before = await credentials.current()
    replace(tmp_path / "tls.crt", new.chain)
    assert await credentials.current() == before
    replace(tmp_path / "tls.key", new.key)
    after = (await credentials.current()).client_certificate
    assert after is not None
    assert (after.chain, after.key) == (new.chain, new.key)


async def test_certificate_prefers_data_over_files(tmp_path: Path) -> None:
    pair = a_pair()
    (tmp_path / "tls.key").write_bytes(pair.key)
    user = {"client-certificate": "missing", "client-certificate-data": b64(pair.chain), "client-key": "tls.key"}
    shown = (await credentials_for(tmp_path, user).current()).client_certificate
    assert shown is not None
    assert shown.chain == pair.chain


@pytest.mark.parametrize(
    ("expires", "words"),
    [
        pytest.param(datetime(2026, 11, 1, 10, tzinfo=UTC), "expired 2026-11-01 10:00 UTC", id="has expired"),
        pytest.param(
            datetime(2026, 11, 1, 13, tzinfo=UTC),
            "was not accepted though valid until 2026-11-01 13:00 UTC",
            id="is valid",
        ),
    ],
)
def test_explain_names_credential_and_expiry(expires: datetime, words: str, tmp_path: Path) -> None:
    pair = a_pair(expires=expires)
    (tmp_path / "token").write_text(a_jwt(expires))
    certificate = {"client-certificate-data": b64(pair.chain), "client-key-data": b64(pair.key)}
    owner = f"user admin in {tmp_path}/config"
    assert credentials_for(tmp_path, certificate).explain() == (
        f"client certificate of {owner} {words}: get a new kubeconfig"
    )
    assert credentials_for(tmp_path, {"token": a_jwt(expires)}).explain() == (
        f"token of {owner} {words}: get a new kubeconfig"
    )
    assert credentials_for(tmp_path, {"tokenFile": "token"}).explain() == (
        f"token in {tmp_path}/token of {owner} {words}: renew it"
    )


@pytest.mark.parametrize(
    "token",
    [
        pytest.param("opaque", id="being opaque"),
        pytest.param("a.b.c", id="having no base64"),
        pytest.param("a.e30.c", id="having no expiry"),
        pytest.param(f"a.{b64('[]')}.c", id="having no claims"),
        pytest.param("a." + b64('{"exp": 1e99}') + ".c", id="naming no real date"),
    ],
)
def test_explain_without_expiry(token: str, tmp_path: Path) -> None:
    explained = credentials_for(tmp_path, {"token": token}).explain()
    assert explained == f"token of user admin in {tmp_path}/config was not accepted: get a new kubeconfig"


async def test_credentials_hide_secrets(tmp_path: Path) -> None:
    pair = a_pair()
    files = {"client-certificate-data": b64(pair.chain), "client-key-data": b64(pair.key)}
    for user in ({"token": SECRET, **files}, {"username": "u", "password": SECRET}):
        credentials = credentials_for(tmp_path, user)
        text = f"{credentials!r} {await credentials.current()!r} {credentials.explain()}"
        assert SECRET not in text
        assert "Basic" not in text
        assert "PRIVATE" not in text


@pytest.mark.parametrize(
    "token",
    [
        pytest.param(f"{SECRET}\nX: y", id="for its line end"),
        pytest.param(f"{SECRET} y", id="for its space"),
        pytest.param(f"{SECRET}é", id="for its accent"),
        pytest.param(" ", id="for being blank"),
    ],
)
def test_token_with_invalid_characters_is_refused(token: str, tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match="token") as refusal:
        credentials_for(tmp_path, {"token": token})
    assert SECRET not in str(refusal.value)
