"""What a person reads who got something wrong: one line on what to do, and no traceback."""

import base64
import os
import socket
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import pytest
import yaml

from tests.cli.commands import Ended, steward
from tests.forkserver import fork_server
from tests.grants import an_account
from tests.kube.certificates import an_authority
from tests.ports import a_free_port
from virt_steward.kube.client import Client
from virt_steward.runtime.access import Access, Installation
from virt_steward_demo.local.controlplane import ControlPlane

NOBODY = Access("nobody")

QUIET = ("--metrics-bind-address=0", "--debug-bind-address=0", "--health-probe-bind-address=0")
RUN = ("run", "--controllers=approver", *QUIET)
EXPLAIN = ("explain", "installplan", "default/install-1")


def complaint(ended: Ended) -> str:
    """The one line that it says."""
    assert ended.code not in (0, None), ended.stdout
    assert ended.stdout == ""
    [line] = ended.stderr.splitlines()
    assert line.startswith("virt-steward: ")
    return line


@pytest.fixture
def altered(control_plane: ControlPlane, tmp_path: Path) -> Callable[..., Path]:
    """A kubeconfig of the control plane with something else in its cluster or user."""

    def write(cluster: dict[str, Any] | None = None, user: dict[str, Any] | None = None) -> Path:
        config = yaml.safe_load(control_plane.kubeconfig.read_text())
        config["clusters"][0]["cluster"].update(cluster or {})
        if user is not None:
            config["users"][0]["user"] = user
        path = tmp_path / "config"
        path.write_text(yaml.safe_dump(config))
        return path

    return write


def encoded(text: bytes) -> str:
    return base64.b64encode(text).decode()


@pytest.mark.parametrize("command", [pytest.param(RUN, id="run"), pytest.param(EXPLAIN, id="explain")])
async def test_a_kubeconfig_of_garbage_is_named(command: tuple[str, ...], tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_bytes(b"\x00\xff: [")
    assert str(path) in complaint(await steward(*command, kubeconfig=path))


async def test_a_kubeconfig_that_is_not_there_is_named(tmp_path: Path) -> None:
    path = tmp_path / "nowhere"
    line = complaint(await steward(*RUN, "--kubeconfig", str(path), kubeconfig=path))
    assert str(path) in line


async def test_a_context_that_is_not_there_is_named_with_those_that_are(control_plane: ControlPlane) -> None:
    line = complaint(await steward(*EXPLAIN, "--context", "moon", kubeconfig=control_plane.kubeconfig))
    assert "moon" in line
    assert yaml.safe_load(control_plane.kubeconfig.read_text())["contexts"][0]["name"] in line


@pytest.mark.parametrize("command", [pytest.param(RUN, id="run"), pytest.param(EXPLAIN, id="explain")])
async def test_a_server_that_does_not_answer_is_named(command: tuple[str, ...], altered: Callable[..., Path]) -> None:
    port = a_free_port()
    server = f"https://127.0.0.1:{port}"
    line = complaint(await steward(*command, kubeconfig=altered(cluster={"server": server})))
    assert f"{server} unreachable: Connection refused; check that it runs" in line


async def test_a_server_of_another_authority_is_not_trusted(altered: Callable[..., Path]) -> None:
    path = altered(cluster={"certificate-authority-data": encoded(an_authority("stranger").chain)})
    line = complaint(await steward(*EXPLAIN, kubeconfig=path))
    assert "is not trusted" in line
    assert line.endswith(f"in {path}")


async def test_a_missing_permission_is_named(admin: Client, altered: Callable[..., Path], operators: str) -> None:
    account = await an_account(admin, NOBODY, Installation(operators, prefix=operators))
    line = complaint(await steward(*EXPLAIN, kubeconfig=altered(user={"token": account.token})))
    assert f'User "{account.user}" cannot list resource "installplans"' in line


@pytest.mark.parametrize("command", [pytest.param(RUN, id="run"), pytest.param(EXPLAIN, id="explain")])
async def test_an_expired_client_certificate_is_said_to_be_so(
    command: tuple[str, ...], control_plane: ControlPlane, altered: Callable[..., Path]
) -> None:
    identity = control_plane.authority.client("ann", ["system:masters"], lifetime=timedelta(days=-1))
    user = {
        "client-certificate-data": encoded(identity.certificate),
        "client-key-data": encoded(identity.key),
    }
    line = complaint(await steward(*command, kubeconfig=altered(user=user)))
    assert "expired" in line


async def test_a_port_that_is_taken_is_named_with_its_flag(control_plane: ControlPlane) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        command = (*RUN, "--namespace=default", f"--metrics-bind-address={address}", "--log-level=error")
        line = complaint(await steward(*command, kubeconfig=control_plane.kubeconfig))
    assert f"--metrics-bind-address {address}: Address already in use; choose another address" in line


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param(("explain", "installplan", "install-1"), "write NAMESPACE/NAME", id="a plan without namespace"),
        pytest.param(
            ("approve", "installplan", "a/b", "--wait", "--timeout=soon"), "--timeout: 'soon'", id="a timeout"
        ),
        pytest.param((*RUN, "--watch-namespaces=a,,b"), "a namespace name is empty", id="a namespace without name"),
        pytest.param((*RUN, "--policy-namespaces="), "a namespace name is empty", id="a policy namespace without name"),
        pytest.param(
            (*RUN, "--watch-namespaces=a", "--policy-namespaces=a,b"),
            "add b to --watch-namespaces too",
            id="a policy namespace that is not watched",
        ),
        pytest.param((*RUN, "--notify-config=nowhere.yaml"), "nowhere.yaml: No such file", id="a missing file"),
        pytest.param(
            ("demo", "--console-bind-address=0.0.0.0:8090"),
            "--console-bind-address 0.0.0.0:8090: allowed on loopback only; use 127.0.0.1:8090",
            id="a demo for everybody",
        ),
        pytest.param(("run", "--controllers=nobody"), "unknown controller 'nobody'", id="an unknown controller"),
    ],
)
async def test_a_wrong_argument_is_named(
    arguments: tuple[str, ...], expected: str, control_plane: ControlPlane
) -> None:
    assert expected in complaint(await steward(*arguments, kubeconfig=control_plane.kubeconfig))


@pytest.mark.parametrize("command", ["crds", "version"])
def test_a_full_disk_is_reported_in_one_line(command: str) -> None:
    with Path(os.devnull).open("rb") as given, Path("/dev/full").open("wb") as full, TemporaryFile() as err:
        fork = fork_server().start([command], os.environ, (given.fileno(), full.fileno(), err.fileno()))
        assert fork.exit_code == 1
        err.seek(0)
        assert err.read().decode() == "virt-steward: the output is incomplete: No space left on device\n"
