"""Which proxy leads to a server, if the kubeconfig names none."""

from pathlib import Path

import pytest
import yaml
from aiohttp import web

from tests.gateway import Gateway
from tests.kube.kubeconfigs import SECRET, a_kubeconfig, written
from virt_steward.kube.client import Client
from virt_steward.kube.connection import Connection, unobserved
from virt_steward.kube.discovery import Discovery
from virt_steward.kube.environment_proxy import is_excepted
from virt_steward.kube.errors import BadConfig, ServerUnreachable
from virt_steward.kube.kubeconfig import load_from_bytes, load_kubeconfig

PROXY = "http://proxy.example:3128"
HOST = "https://api.example:6443"


@pytest.mark.parametrize(
    ("env", "proxy"),
    [
        pytest.param({}, None, id="nothing-is-set"),
        pytest.param({"HTTPS_PROXY": PROXY}, PROXY, id="it-is-set"),
        pytest.param({"https_proxy": PROXY}, PROXY, id="it-is-set-in-small-letters"),
        pytest.param({"HTTPS_PROXY": PROXY, "https_proxy": "http://other"}, PROXY, id="both-are-set"),
        pytest.param({"HTTPS_PROXY": "proxy.example:3128"}, PROXY, id="it-has-no-scheme"),
        pytest.param({"HTTP_PROXY": PROXY}, None, id="only-that-of-plain-http-is-set"),
        pytest.param({"HTTPS_PROXY": PROXY, "NO_PROXY": "example"}, None, id="the-server-is-excepted"),
        pytest.param({"HTTPS_PROXY": PROXY, "no_proxy": "example"}, None, id="it-is-excepted-in-small-letters"),
    ],
)
def test_kubeconfig_uses_environment_proxy(env: dict[str, str], proxy: str | None, tmp_path: Path) -> None:
    config = written(tmp_path / "config", a_kubeconfig())
    assert load_kubeconfig(config, env=env).proxy == proxy


def test_kubeconfig_proxy_wins_over_environment(tmp_path: Path) -> None:
    config = written(tmp_path / "config", a_kubeconfig(cluster={"proxy-url": "http://own.example"}))
    assert load_kubeconfig(config, env={"HTTPS_PROXY": PROXY, "NO_PROXY": "*"}).proxy == "http://own.example"


def test_secret_kubeconfig_ignores_environment_proxy() -> None:
    text = yaml.safe_dump(a_kubeconfig()).encode()
    env = {"HTTPS_PROXY": PROXY}
    assert load_from_bytes(text, source="a Secret", trusted=False, env=env).proxy is None
    assert load_from_bytes(text, source="a file", trusted=True, env=env).proxy == PROXY


def test_invalid_proxy_is_reported_without_password(tmp_path: Path) -> None:
    config = written(tmp_path / "config", a_kubeconfig())
    with pytest.raises(BadConfig, match="the environment: HTTPS_PROXY is not a URL such as") as error:
        load_kubeconfig(config, env={"HTTPS_PROXY": f"ftp://bob:{SECRET}@proxy"})
    assert SECRET not in str(error.value)


@pytest.mark.parametrize(
    ("server", "exceptions", "excepted"),
    [
        (HOST, "", False),
        (HOST, "*", True),
        (HOST, "other, api.example", True),
        (HOST, "API.Example", True),
        (HOST, "pi.example", False),
        (HOST, "example", True),
        (HOST, ".example", True),
        (HOST, "*.example", True),
        (HOST, ".api.example", False),
        (HOST, "api.example:6443", True),
        (HOST, "api.example:443", False),
        (HOST, ",.,:,[,*.,10.0.0.0/99", False),
        ("https://api.example", "api.example:443", True),
        ("https://10.0.0.1:6443", "10.0.0.0/8", True),
        ("https://10.0.0.1:6443", "10.0.0.1:6443", True),
        ("https://10.0.0.1:6443", "10.0.0.1:443", False),
        ("https://10.0.0.1:6443", "192.168.0.0/16,0.0.0.1", False),
        ("https://[fd00::1]:6443", "fd00::/8", True),
        ("https://[fd00::1]:6443", "[fd00::1]:6443", True),
        ("https://127.0.0.1:6443", "", True),
        ("https://[::1]:6443", "", True),
        ("https://localhost:6443", "", True),
    ],
)
def test_no_proxy_excludes_servers(server: str, exceptions: str, excepted: bool) -> None:
    assert is_excepted(server, {"NO_PROXY": exceptions}) == excepted


async def test_requests_use_environment_proxy(gateway: Gateway, tmp_path: Path) -> None:
    asked: list[str] = []

    async def refuse(request: web.BaseRequest) -> web.StreamResponse:
        asked.append(f"{request.method} {request.raw_path}")
        return web.Response(status=407)

    gateway.intercept = refuse
    config = written(tmp_path / "config", a_kubeconfig())
    cluster = load_kubeconfig(config, env={"HTTPS_PROXY": gateway.server})
    connection = Connection(cluster, user_agent="tests", observe=unobserved)
    try:
        with pytest.raises(ServerUnreachable, match="the proxy answered 407"):
            await Client(connection, Discovery(connection)).raw("/version")
    finally:
        await connection.close()
    assert asked == ["CONNECT api.example:6443"]
