import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.kube.certificates import a_pair, an_authority
from tests.kube.kubeconfigs import SECRET, a_context, a_kubeconfig, b64, written
from virt_steward.kube.errors import BadConfig
from virt_steward.kube.kubeconfig import ClusterConfig, load_from_bytes, load_kubeconfig


def loaded(tmp_path: Path, config: object, context: str | None = None) -> ClusterConfig:
    return load_kubeconfig(written(tmp_path / "config", config), context, env={})


def refusal(tmp_path: Path, config: object, context: str | None = None) -> str:
    with pytest.raises(BadConfig) as refused:
        loaded(tmp_path, config, context)
    return str(refused.value).replace(str(tmp_path), "~")


def listed(*paths: object) -> dict[str, str]:
    return {"KUBECONFIG": os.pathsep.join(map(str, paths))}


async def token_of(cluster: ClusterConfig) -> str:
    return (await cluster.credentials.current()).headers[0][1].removeprefix("Bearer ")


def test_load_uses_current_context(tmp_path: Path) -> None:
    config = a_kubeconfig(contexts=[a_context("home"), a_context("work", namespace="virt")])
    assert (loaded(tmp_path, config).context, loaded(tmp_path, config).namespace) == ("home", "default")
    assert (loaded(tmp_path, config, "work").context, loaded(tmp_path, config, "work").namespace) == ("work", "virt")


@pytest.mark.parametrize(
    ("cluster", "attribute", "value"),
    [
        pytest.param({"server": "https://h:1/prefix/"}, "server", "https://h:1/prefix", id="a server with a prefix"),
        pytest.param({"server": "http://localhost:1"}, "server", "http://localhost:1", id="a server without TLS"),
        pytest.param({"server": "https://[::1]:6443"}, "server", "https://[::1]:6443", id="an IPv6 server"),
        pytest.param({"tls-server-name": "kubernetes"}, "server_name", "kubernetes", id="tls-server-name"),
        pytest.param({"proxy-url": "http://u:p@proxy:3128"}, "proxy", "http://u:p@proxy:3128", id="proxy-url"),
        pytest.param({}, "proxy", None, id="no proxy"),
    ],
)
def test_load_reads_cluster(cluster: dict[str, Any], attribute: str, value: object, tmp_path: Path) -> None:
    assert getattr(loaded(tmp_path, a_kubeconfig(cluster=cluster)), attribute) == value


def test_load_reads_authority_from_data_or_file(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_bytes(an_authority().chain)
    both = {"certificate-authority-data": b64(an_authority("other").chain), "certificate-authority": "missing"}
    assert loaded(tmp_path, a_kubeconfig(cluster=both)).trust.authority == an_authority("other").chain
    file = {"certificate-authority": "ca.crt"}
    assert loaded(tmp_path, a_kubeconfig(cluster=file)).trust.authority == tmp_path / "ca.crt"


@pytest.mark.parametrize("insecure", [True, False])
def test_load_allows_insecure_in_own_kubeconfig(insecure: bool, tmp_path: Path) -> None:
    cluster = {"insecure-skip-tls-verify": insecure}
    assert loaded(tmp_path, a_kubeconfig(cluster=cluster)).trust.verify is not insecure


def test_load_reads_impersonation(tmp_path: Path) -> None:
    user = {
        "token": SECRET,
        "as": "jane",
        "as-uid": "42",
        "as-groups": ["dev", "ops"],
        "as-user-extra": {"example.org/scope": ["a", "b"]},
    }
    assert loaded(tmp_path, a_kubeconfig(user=user)).impersonate == (
        ("Impersonate-User", "jane"),
        ("Impersonate-Uid", "42"),
        ("Impersonate-Group", "dev"),
        ("Impersonate-Group", "ops"),
        ("Impersonate-Extra-example.org%2Fscope", "a"),
        ("Impersonate-Extra-example.org%2Fscope", "b"),
    )


async def test_load_merges_files_first_wins(tmp_path: Path) -> None:
    first = written(tmp_path / "1", {"users": [{"name": "admin", "user": {"token": "first"}}], "current-context": ""})
    second = written(tmp_path / "2", a_kubeconfig(user={"token": "second", "as": "jane"}))
    third = written(tmp_path / "3", a_kubeconfig(cluster={"server": "https://third"}, current_context="none"))
    cluster = load_kubeconfig(env=listed(first, second, third, first))
    assert await token_of(cluster) == "first"
    assert cluster.impersonate == ()  # a user is taken whole
    assert cluster.server == "https://api.example:6443"


async def test_load_resolves_relative_paths(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "token").write_text("beside-b")
    first = written(tmp_path / "a" / "config", {"current-context": "home"})
    second = written(tmp_path / "b" / "config", a_kubeconfig(user={"tokenFile": "token"}))
    assert await token_of(load_kubeconfig(env=listed(first, second))) == "beside-b"


def test_load_skips_missing_listed_files(tmp_path: Path) -> None:
    config = written(tmp_path / "config", a_kubeconfig())
    assert load_kubeconfig(env=listed("", tmp_path / "missing", config)).context == "home"


def test_load_prefers_path_then_list_then_home(tmp_path: Path) -> None:
    for place in ("path", "listed", "home/.kube/config"):
        written(tmp_path / place, a_kubeconfig(cluster={"server": f"https://{place[:4]}"}))
    home = {"HOME": str(tmp_path / "home")}
    env = home | listed(tmp_path / "listed")
    assert load_kubeconfig(str(tmp_path / "path"), env=env).server == "https://path"
    assert load_kubeconfig(env=env).server == "https://list"
    assert load_kubeconfig(env=home).server == "https://home"


@pytest.fixture
def service_account(tmp_path: Path) -> Path:
    mounted = tmp_path / "serviceaccount"
    mounted.mkdir()
    (mounted / "token").write_text("mounted")
    (mounted / "namespace").write_text("virt-steward")
    (mounted / "ca.crt").write_bytes(an_authority().chain)
    return mounted


@pytest.mark.parametrize(
    ("host", "server"),
    [
        pytest.param("10.0.0.1", "https://10.0.0.1:443", id="of IPv4"),
        pytest.param("fd00::1", "https://[fd00::1]:443", id="of IPv6"),
    ],
)
async def test_load_uses_service_account_in_pod(host: str, server: str, service_account: Path) -> None:
    env = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": "443"}
    cluster = load_kubeconfig(env=env, service_account=service_account)
    assert (cluster.server, cluster.context, cluster.namespace) == (server, "in-cluster", "virt-steward")
    assert await token_of(cluster) == "mounted"
    (service_account / "token").write_text("rotated")
    assert await token_of(cluster) == "rotated"
    assert load_kubeconfig(env={**env, "HTTPS_PROXY": "proxy:1"}, service_account=service_account).proxy


def test_load_prefers_kubeconfig_over_service_account(tmp_path: Path, service_account: Path) -> None:
    written(tmp_path / ".kube" / "config", a_kubeconfig())
    env = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "HOME": str(tmp_path)}
    assert load_kubeconfig(env=env, service_account=service_account).context == "home"


def test_load_never_replaces_list_by_service_account(service_account: Path) -> None:
    env = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", **listed("/nowhere/config")}
    with pytest.raises(BadConfig, match="looked at /nowhere/config; set"):
        load_kubeconfig(env=env, service_account=service_account)


@pytest.mark.parametrize(
    ("env", "context", "places"),
    [
        pytest.param({"HOME": "/h"}, None, "/h/.kube/config, /nowhere", id="at home or in a pod"),
        pytest.param({"KUBECONFIG": "/a:/b", "HOME": "/h"}, None, "/a, /b", id="in the list"),
        pytest.param({"KUBERNETES_SERVICE_HOST": "h"}, "work", "/nowhere", id="for a context that no pod has"),
    ],
)
def test_load_names_all_places_when_none_found(env: dict[str, str], context: str | None, places: str) -> None:
    with pytest.raises(BadConfig) as refused:
        load_kubeconfig(context=context, env=env, service_account=Path("/nowhere"))
    assert str(refused.value) == f"no kubeconfig found: looked at {places}; set --kubeconfig or KUBECONFIG"


def test_load_reports_missing_or_unreadable_file(tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match="cannot read /nowhere/config: No such file or directory"):
        load_kubeconfig("/nowhere/config", env={})
    with pytest.raises(BadConfig, match=f"cannot read {tmp_path}: Is a directory"):
        load_kubeconfig(env=listed(tmp_path))


HERE, ADMIN = "cluster here in ~/config", "user admin in ~/config"
PAIR = a_pair()


@pytest.mark.parametrize(
    ("config", "line"),
    [
        pytest.param([], "~/config: is not a kubeconfig: Expected `object`, got `array`", id="no mapping"),
        pytest.param(a_kubeconfig(users={}), "Expected `array | null`, got `object` - at `$.users`", id="users as map"),
        pytest.param(a_kubeconfig(users=[{"name": 5}]), "got `int` - at `$.users[0].name`", id="a number as name"),
        pytest.param(a_kubeconfig(current_context=None), "has no current-context: choose one of home", id="no current"),
        pytest.param(
            a_kubeconfig(current_context="x"), "context x not found: choose one of home", id="an absent context"
        ),
        pytest.param({}, "~/config: has no current-context. The kubeconfig defines no contexts", id="nothing at all"),
        pytest.param(
            a_kubeconfig(clusters=[]),
            "context home in ~/config: cluster here not found. The kubeconfig defines no clusters",
            id="no cluster",
        ),
        pytest.param(
            a_kubeconfig(users=None),
            "context home in ~/config: user admin not found. The kubeconfig defines no users",
            id="no user",
        ),
        pytest.param(
            a_kubeconfig(contexts=[{"name": "home"}]), "context home in ~/config: has no cluster", id="empty context"
        ),
        pytest.param(
            a_kubeconfig(users=[{"name": "admin"}] * 2), f"{ADMIN}: is defined twice: remove one", id="one user twice"
        ),
        pytest.param(a_kubeconfig(cluster={"server": None}), f"{HERE}: server is not a URL", id="no server"),
        pytest.param(a_kubeconfig(cluster={"server": "h:6443"}), f"{HERE}: server is not a URL", id="no scheme"),
        pytest.param(a_kubeconfig(cluster={"server": "https://h:x"}), f"{HERE}: server is not a URL", id="a bad port"),
        pytest.param(
            a_kubeconfig(cluster={"server": f"https://u:{SECRET}@h"}),
            f"{HERE}: server must have only",
            id="a password in it",
        ),
        pytest.param(
            a_kubeconfig(cluster={"proxy-url": f"socks5://u:{SECRET}@h"}), f"{HERE}: proxy-url: SOCKS", id="SOCKS"
        ),
        pytest.param(
            a_kubeconfig(cluster={"certificate-authority-data": "?"}),
            f"{HERE}: certificate-authority-data is not base64: get a new kubeconfig",
            id="an authority that is not base64",
        ),
        pytest.param(
            a_kubeconfig(cluster={"certificate-authority-data": b64("x")}),
            f"certificate authority of {HERE}: not a PEM certificate: get a new kubeconfig",
            id="an authority that is no PEM",
        ),
        pytest.param(
            a_kubeconfig(cluster={"certificate-authority": "ca"}),
            f"certificate authority of {HERE}: cannot read ~/ca: No such file or directory",
            id="an authority that is missing",
        ),
        pytest.param(
            a_kubeconfig(cluster={"certificate-authority": "ca", "insecure-skip-tls-verify": True}),
            f"{HERE}: has a certificate authority and insecure-skip-tls-verify: keep one of them",
            id="an authority that is not asked",
        ),
        pytest.param(
            a_kubeconfig(user={"client-certificate-data": b64(PAIR.chain), "client-key-data": b64(a_pair().key)}),
            f"{ADMIN}: the key does not match the certificate",
            id="another certificate's key",
        ),
        pytest.param(
            a_kubeconfig(user={"client-certificate-data": b64(PAIR.chain)}),
            f"{ADMIN}: has a client certificate without its key",
            id="no key",
        ),
        pytest.param(
            a_kubeconfig(user={"client-certificate-data": "?", "client-key-data": SECRET + "?"}),
            f"{ADMIN}: client-certificate-data is not base64",
            id="a certificate that is not base64",
        ),
        pytest.param(
            a_kubeconfig(user={"tokenFile": "token"}), f"{ADMIN}: cannot read ~/token: No such", id="no token file"
        ),
        pytest.param(
            a_kubeconfig(user={"tokenFile": "a\0b"}), f"{ADMIN}: cannot read ~/a?b: no such path", id="no path at all"
        ),
        pytest.param(
            a_kubeconfig(user={"token": SECRET, "username": "u"}), f"{ADMIN}: has a username and a token", id="both"
        ),
        pytest.param(
            a_kubeconfig(user={"auth-provider": {"name": "oidc", "config": {"id-token": SECRET}}}),
            f"{ADMIN}: auth-provider is not supported (kubectl has removed it): use an exec plugin",
            id="an auth-provider",
        ),
        pytest.param(
            a_kubeconfig(user={"as-groups": ["ops"]}), f"{ADMIN}: impersonates a uid, groups", id="groups of nobody"
        ),
        pytest.param(
            a_kubeconfig(user={"as": "jane\r\nX: y"}), f"{ADMIN}: impersonates a name with characters", id="two headers"
        ),
    ],
)
def test_load_refuses_invalid_kubeconfig(config: object, line: str, tmp_path: Path) -> None:
    said = refusal(tmp_path, config)
    assert line in said
    assert said.isprintable()
    assert SECRET not in said


@pytest.mark.parametrize(
    ("text", "line"),
    [
        pytest.param(f"token: [{SECRET}".encode(), "Secret a/b: is not YAML (line ", id="an open bracket"),
        pytest.param(f"a: *{SECRET}".encode(), "aliases", id="an alias"),
        pytest.param(b"\xff\xfe\x00", "Secret a/b: is not YAML", id="no text"),
        pytest.param(b"[" * 100_000, "Secret a/b: is nested more than 64 levels deep", id="brackets without end"),
        pytest.param(b"a: " + b"9" * 5000, "Secret a/b: is not YAML", id="a number without end"),
        pytest.param(b"a: 1\n---\nb: 2", "Secret a/b: is not YAML (line 2)", id="two documents"),
    ],
)
def test_load_refuses_invalid_text(text: bytes, line: str) -> None:
    with pytest.raises(BadConfig) as refused:
        load_from_bytes(text, source="Secret a/b", trusted=False)
    assert line in str(refused.value)
    assert SECRET not in str(refused.value)


EXEC = {"command": "login", "apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never"}


@pytest.mark.parametrize(
    ("config", "words"),
    [
        pytest.param(a_kubeconfig(user={"exec": EXEC}), "exec runs a command here", id="an exec plugin"),
        pytest.param(a_kubeconfig(user={"tokenFile": "/etc/t"}), "tokenFile reads a local file", id="a token file"),
        pytest.param(
            a_kubeconfig(user={"client-certificate": "/c"}), "client-certificate reads a local file", id="a certificate"
        ),
        pytest.param(a_kubeconfig(user={"client-key": "/k"}), "client-key reads a local file", id="a key file"),
        pytest.param(
            a_kubeconfig(cluster={"certificate-authority": "/ca"}),
            "certificate-authority reads a local file",
            id="an authority file",
        ),
        pytest.param(a_kubeconfig(cluster={"proxy-url": "http://p"}), "proxy-url sends requests", id="a proxy"),
        pytest.param(
            a_kubeconfig(cluster={"insecure-skip-tls-verify": True}),
            "insecure-skip-tls-verify trusts any server",
            id="no verification",
        ),
        pytest.param(
            a_kubeconfig(cluster={"server": "HTTP://api.example:8080"}),
            "server is http, which sends credentials unencrypted",
            id="a server without TLS",
        ),
    ],
)
def test_secret_kubeconfig_refuses_local_access(config: dict[str, Any], words: str) -> None:
    with pytest.raises(BadConfig) as refused:
        load_from_bytes(yaml.safe_dump(config).encode(), source="Secret fleet/east", trusted=False)
    assert f"in Secret fleet/east: {words}" in str(refused.value)
    assert "which is not allowed in a kubeconfig from a Secret" in str(refused.value)


async def test_secret_kubeconfig_accepts_data() -> None:
    config = a_kubeconfig(
        user={"token": "abc", "client-certificate-data": b64(PAIR.chain), "client-key-data": b64(PAIR.key)},
        cluster={"certificate-authority-data": b64(an_authority().chain)},
    )
    cluster = load_from_bytes(yaml.safe_dump(config).encode(), source="Secret fleet/east", trusted=False)
    assert await token_of(cluster) == "abc"
    assert cluster.trust.authority == an_authority().chain


def test_cluster_config_hides_secrets(tmp_path: Path) -> None:
    cluster = loaded(tmp_path, a_kubeconfig(cluster={"proxy-url": f"http://u:{SECRET}@proxy"}))
    assert SECRET not in repr(cluster)
