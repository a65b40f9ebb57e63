"""Building once and atomically, with a fake `go` that blocks as long as a test needs, and the steps of a build."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.eventually import eventually_blocking
from tests.local.test_processes import is_running
from virt_steward_demo.local import LocalError
from virt_steward_demo.local.build import BuildSteps
from virt_steward_demo.local.progress import ProgressPrinter

GO = """#!/bin/sh
if [ "$1" = list ]; then echo "go: downloading some/module v1.0.0" >&2; echo fmt; echo os; exit; fi
echo $$ >> builds
while [ -e hold ]; do sleep 0.02; done
if [ -e fail ]; then echo main.go:1: no luck today >&2; exit 1; fi
while [ "$1" != -o ]; do shift; done
echo program > "$2"
"""


@dataclass(frozen=True, slots=True)
class BuildSetup:
    """Sources, a cache and a `go`; `hold` in the sources stops the compiler, `fail` makes it fail."""

    folder: Path

    @property
    def sources(self) -> Path:
        return self.folder / "sources"

    @property
    def cache(self) -> Path:
        return self.folder / "cache"

    @property
    def hold(self) -> Path:
        return self.sources / "hold"

    @property
    def fail(self) -> Path:
        return self.sources / "fail"

    def builds(self) -> list[int]:
        """The process ids of all compilers so far."""
        path = self.sources / "builds"
        return [int(line) for line in path.read_text().split()] if path.exists() else []

    def cached(self) -> set[str]:
        """What is in the cache, without the hash."""
        return {re.sub(r"^controlplane-[^.]*", "controlplane", path.name) for path in self.cache.iterdir()}

    def request(self) -> subprocess.Popen[str]:
        argv = [
            sys.executable,
            "-m",
            "tests.local.build_request",
            str(self.sources),
            str(self.cache),
            str(self.folder / "go"),
        ]
        return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.fixture
def build(tmp_path: Path) -> Iterator[BuildSetup]:
    build = BuildSetup(tmp_path)
    build.sources.mkdir()
    for name in ("go.sum", "main.go", "toolchain.txt"):
        (build.sources / name).touch()
    (build.sources / "go.mod").write_text("require (\n\tk8s.io/kubernetes v1.36.3\n)\n")
    (tmp_path / "go").write_text(GO)
    (tmp_path / "go").chmod(0o700)
    yield build
    build.hold.unlink(missing_ok=True)  # also after a failure: a blocked compiler ends now


def test_build_leaves_only_programs(build: BuildSetup) -> None:
    output, messages = build.request().communicate()
    folder = Path(output.strip())
    assert {path.name for path in folder.iterdir()} == {
        "controlplane",
        "etcd",
        "kube-apiserver",
        "kube-controller-manager",
    }
    assert (folder / "etcd").read_text() == "program\n"
    assert build.cached() == {"controlplane", "controlplane.lock"}
    assert [line.split(" (")[0].split(" in ")[0] for line in messages.splitlines()] == [
        "building the control plane v1.36.3",
        "built the control plane",
    ]


def test_build_uses_cache(build: BuildSetup) -> None:
    first, second = build.request().communicate(), build.request().communicate()
    assert second == (first[0], "")
    assert len(build.builds()) == 1


def test_build_repeats_for_changed_source(build: BuildSetup) -> None:
    first, _ = build.request().communicate()
    (build.sources / "main.go").write_text("package main\n")
    second, _ = build.request().communicate()
    assert first != second
    assert len(build.builds()) == 2


def test_build_runs_once_for_concurrent_requests(build: BuildSetup) -> None:
    build.hold.touch()
    first = build.request()
    assert eventually_blocking(lambda: len(build.builds()) == 1)
    second = build.request()
    assert second.stderr is not None
    assert second.stderr.readline() == f"waiting for process {first.pid}, which is building the control plane\n"
    build.hold.unlink()
    answers = {first.communicate()[0], second.communicate()[0]}
    assert len(answers) == 1
    assert len(build.builds()) == 1


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_interrupted_build_leaves_no_result(build: BuildSetup, number: signal.Signals) -> None:
    build.hold.touch()
    request = build.request()
    assert eventually_blocking(lambda: len(build.builds()) == 1)
    request.send_signal(number)
    request.communicate()
    assert request.returncode != 0
    assert "controlplane" not in build.cached()
    assert eventually_blocking(lambda: not is_running(build.builds()[0]))


def test_build_continues_after_killed_builder(build: BuildSetup) -> None:
    build.hold.touch()
    first = build.request()
    assert eventually_blocking(lambda: len(build.builds()) == 1)
    second = build.request()
    assert second.stderr is not None
    second.stderr.readline()
    os.kill(first.pid, signal.SIGKILL)
    first.communicate()
    build.hold.unlink()
    second.communicate()
    assert second.returncode == 0
    assert len(build.builds()) == 2
    assert build.cached() == {"controlplane", "controlplane.lock"}


def test_failed_build_reports_one_line_and_keeps_log(build: BuildSetup) -> None:
    build.fail.touch()
    request = build.request()
    _, messages = request.communicate()
    assert request.returncode == 1
    *_, last = messages.splitlines()
    assert last.startswith(
        "compiling packages failed: main.go:1: no luck today; fix that and try again (the whole log is "
    )
    assert "some/module" in next(build.cache.glob("*.log")).read_text()
    assert build.cached() == {"controlplane.lock", "controlplane.log"}


def test_failed_build_can_be_retried(build: BuildSetup) -> None:
    build.fail.touch()
    build.request().communicate()
    build.fail.unlink()
    again = build.request()
    again.communicate()
    assert again.returncode == 0
    assert build.cached() == {"controlplane", "controlplane.lock"}


class InterruptedProgress(ProgressPrinter):
    """Raises KeyboardInterrupt at the first output."""

    def show(self, step: str, done: int, total: int | None) -> None:
        super().show(step, done, total)
        if done:
            raise KeyboardInterrupt


def steps_in(folder: Path, progress: ProgressPrinter) -> BuildSteps:
    return BuildSteps(folder, os.environ, folder / "log", progress)


def test_interrupted_step_leaves_no_process(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        steps_in(tmp_path, InterruptedProgress()).run("sleeping", ["/bin/sh", "-c", "echo $$; exec sleep 60"])
    assert not is_running(int((tmp_path / "log").read_text()))


def test_step_returns_its_own_lines(tmp_path: Path) -> None:
    steps = steps_in(tmp_path, ProgressPrinter())
    assert steps.run("first", ["/bin/echo", "one"]) == ["one"]
    assert steps.run("second", ["/bin/echo", "two"]) == ["two"]
    assert (tmp_path / "log").read_text() == "one\ntwo\n"


def test_step_failure_without_output_is_named(tmp_path: Path) -> None:
    with pytest.raises(LocalError, match="thinking failed: no output"):
        steps_in(tmp_path, ProgressPrinter()).run("thinking", ["/bin/false"])


def test_step_fails_if_program_is_missing(tmp_path: Path) -> None:
    with pytest.raises(LocalError, match=r"getting failed: .*No such file"):
        steps_in(tmp_path, ProgressPrinter()).run("getting", ["/absent/go"])
