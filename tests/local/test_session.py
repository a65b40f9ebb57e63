"""`virt-steward local`, each command as a process of its own."""

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tests.cli.commands import check_answer
from tests.cluster import PlainClient
from tests.eventually import eventually_blocking
from tests.local.test_processes import is_running

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
COMMAND = """
import sys
from virt_steward_demo.cli.local import app
from virt_steward_demo.local import LocalError
try:
    app()
except LocalError as error:
    sys.exit(f"error: {error}")
"""


@dataclass(frozen=True, slots=True)
class CommandResult:
    """The output and the exit code of a command."""

    out: str
    err: str
    code: int

    @property
    def document(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.out)
        return document


@dataclass(frozen=True, slots=True)
class User:
    """A user with a separate state folder."""

    home: Path

    def start(self, *arguments: str, **variables: str) -> subprocess.Popen[str]:
        env = {**os.environ, "XDG_STATE_HOME": str(self.home), **variables}
        argv = [sys.executable, "-c", COMMAND, *arguments]
        return subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def runs(self, *arguments: str, **variables: str) -> CommandResult:
        result = result_of(self.start(*arguments, **variables))
        if "json" in arguments and result.out:
            check_answer(("local", *arguments), result.out)
        return result

    def admin(self) -> PlainClient:
        return PlainClient.from_kubeconfig(self.home / "virt-steward" / "local" / "run" / "kubeconfig")


def result_of(process: subprocess.Popen[str]) -> CommandResult:
    out, err = process.communicate()
    return CommandResult(out, err, process.returncode)


@pytest.fixture
def user(tmp_path: Path) -> Iterator[User]:
    user = User(tmp_path)
    yield user
    assert user.runs("down", "-o", "json").document == {"state": "stopped"}


@pytest.fixture(scope="module")
def starts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[User, list[CommandResult]]]:
    """A user with a running control plane, and the results of the two commands that started it at once."""
    user = User(tmp_path_factory.mktemp("home"))
    yield user, [result_of(command) for command in (user.start("up"), user.start("up"))]
    assert user.runs("down").out == "stopped\n"
    assert list((user.home / "virt-steward" / "local").glob("run*")) == []


@pytest.fixture
def running(starts: tuple[User, list[CommandResult]]) -> User:
    return starts[0]


def test_local_up_starts_once_for_concurrent_commands(starts: tuple[User, list[CommandResult]]) -> None:
    errors = [answer.err for answer in starts[1]]
    assert sum("is ready at" in err for err in errors) == 1
    assert sum("is already running" in err for err in errors) == 1


def test_local_up_prints_export_line(starts: tuple[User, list[CommandResult]]) -> None:
    user, answers = starts
    started = next(answer for answer in answers if "is ready at" in answer.err)
    assert started.out == f"export KUBECONFIG={shlex.quote(user.runs('kubeconfig').out.strip())}\n"
    assert user.admin().get(CONFIG_MAPS).code == 200


def test_local_up_again_prints_same_line(running: User) -> None:
    again = running.runs("up")
    assert "is already running, since" in again.err
    assert again.out.startswith("export KUBECONFIG=")


def test_local_up_with_other_data_is_refused_while_running(running: User) -> None:
    refused = running.runs("up", "--keep-data")
    assert refused.code == 1
    assert "stop it with 'virt-steward local down' first" in refused.err


def test_local_status_shows_processes_and_server(running: User) -> None:
    status = running.runs("status", "-o", "json").document
    assert status["state"] == "running"
    assert status["version"] == running.admin().get("/version").body["gitVersion"]
    assert set(status["pids"]) == {"supervisor", "etcd", "kube-apiserver", "kube-controller-manager"}
    assert all(is_running(pid) for pid in status["pids"].values())
    assert status["server"] in running.runs("status").out


def test_local_kubeconfig_prints_path_or_content(running: User) -> None:
    path = Path(running.runs("kubeconfig").out.strip())
    assert running.runs("kubeconfig", "--raw").out == path.read_text()
    assert running.runs("kubeconfig", "--raw", "-o", "json").document["content"]["kind"] == "Config"
    assert running.runs("up", "-o", "json").document["state"] == "running"
    assert Path(running.runs("assets", "-o", "json").document["folder"]).is_dir()


def test_local_commands_report_stopped_control_plane(user: User) -> None:
    assert user.runs("status") == CommandResult("not running\n", "", 1)
    assert user.runs("status", "-o", "json").document == {"state": "stopped"}
    assert user.runs("down") == CommandResult("not running\n", "", 0)
    assert user.runs("kubeconfig").err == "error: no control plane is running: start one with 'virt-steward local up'\n"


def test_local_assets_prints_folder(user: User) -> None:
    folder = Path(user.runs("assets").out.splitlines()[-1])
    assert (folder / "kube-apiserver").exists()


def test_local_keep_data_survives_restart(user: User) -> None:
    user.runs("up", "--keep-data")
    admin = user.admin()
    admin.create(CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept"}})
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token = admin.create("/api/v1/namespaces/default/serviceaccounts/default/token", request).body["status"]["token"]
    assert "its data is kept in" in user.runs("down").out
    user.runs("up", "--keep-data")
    assert user.admin().token != admin.token
    assert user.admin().get(f"{CONFIG_MAPS}/kept").code == 200
    assert replace(user.admin(), token=token).get(CONFIG_MAPS).code == 403  # still authenticated, without rights


def test_local_up_restarts_after_killed_supervisor(user: User) -> None:
    pids = user.runs("up", "-o", "json").document["pids"]
    os.kill(pids["supervisor"], signal.SIGKILL)
    assert eventually_blocking(lambda: not any(is_running(pid) for pid in pids.values()))
    assert user.runs("status").out == "not running\n"
    again = user.runs("up", "-o", "json").document["pids"]
    os.kill(again["etcd"], signal.SIGKILL)
    assert eventually_blocking(lambda: not any(is_running(pid) for pid in again.values()))
    assert "etcd has exited" in (user.home / "virt-steward" / "local" / "supervisor.log").read_text()


def test_local_up_failure_names_program_and_stops_all(user: User) -> None:
    for name in ("etcd", "kube-apiserver", "kube-controller-manager"):
        (user.home / name).write_text(f"#!/bin/sh\necho no luck\n[ {name} = etcd ] || exec sleep 60\nexit 1\n")
        (user.home / name).chmod(0o700)
    failed = user.runs("up", KUBEBUILDER_ASSETS=str(user.home))
    assert failed.code == 1
    assert failed.err.startswith("error: etcd has exited: no luck; see ")
    assert user.runs("status").out == "not running\n"
