"""Building once and atomically, with a stand-in for `go` that waits as long as a test wants."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.eventually import eventually
from tests.local.test_processes import is_running

GO = """#!/bin/sh
if [ "$1" = list ]; then echo "go: downloading some/module v1.0.0" >&2; echo fmt; echo os; exit; fi
echo $$ >> builds
while [ -e hold ]; do sleep 0.02; done
if [ -e fail ]; then echo main.go:1: no luck today >&2; exit 1; fi
while [ "$1" != -o ]; do shift; done
echo program > "$2"
"""


@dataclass(frozen=True, slots=True)
class Yard:
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

    def ask(self) -> subprocess.Popen[str]:
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
def yard(tmp_path: Path) -> Iterator[Yard]:
    yard = Yard(tmp_path)
    yard.sources.mkdir()
    for name in ("go.sum", "main.go", "toolchain.txt"):
        (yard.sources / name).touch()
    (yard.sources / "go.mod").write_text("require (\n\tk8s.io/kubernetes v1.36.3\n)\n")
    (tmp_path / "go").write_text(GO)
    (tmp_path / "go").chmod(0o700)
    yield yard
    yard.hold.unlink(missing_ok=True)  # whatever has failed: a compiler that waits ends now


def test_build_leaves_only_programs(yard: Yard) -> None:
    told, said = yard.ask().communicate()
    folder = Path(told.strip())
    assert {path.name for path in folder.iterdir()} == {
        "controlplane",
        "etcd",
        "kube-apiserver",
        "kube-controller-manager",
    }
    assert (folder / "etcd").read_text() == "program\n"
    assert yard.cached() == {"controlplane", "controlplane.lock"}
    assert [line.split(" (")[0].split(" in ")[0] for line in said.splitlines()] == [
        "building the control plane v1.36.3",
        "built the control plane",
    ]


def test_build_uses_cache(yard: Yard) -> None:
    first, second = yard.ask().communicate(), yard.ask().communicate()
    assert second == (first[0], "")
    assert len(yard.builds()) == 1


def test_build_repeats_for_changed_source(yard: Yard) -> None:
    first, _ = yard.ask().communicate()
    (yard.sources / "main.go").write_text("package main\n")
    second, _ = yard.ask().communicate()
    assert first != second
    assert len(yard.builds()) == 2


def test_build_runs_once_for_concurrent_requests(yard: Yard) -> None:
    yard.hold.touch()
    first = yard.ask()
    assert eventually(lambda: len(yard.builds()) == 1)
    second = yard.ask()
    assert second.stderr is not None
    assert second.stderr.readline() == f"waiting for process {first.pid}, which is building the control plane\n"
    yard.hold.unlink()
    answers = {first.communicate()[0], second.communicate()[0]}
    assert len(answers) == 1
    assert len(yard.builds()) == 1


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_interrupted_build_leaves_no_result(yard: Yard, number: signal.Signals) -> None:
    yard.hold.touch()
    asker = yard.ask()
    assert eventually(lambda: len(yard.builds()) == 1)
    asker.send_signal(number)
    asker.communicate()
    assert asker.returncode != 0
    assert "controlplane" not in yard.cached()
    assert eventually(lambda: not is_running(yard.builds()[0]))


def test_build_continues_after_killed_builder(yard: Yard) -> None:
    yard.hold.touch()
    first = yard.ask()
    assert eventually(lambda: len(yard.builds()) == 1)
    second = yard.ask()
    assert second.stderr is not None
    second.stderr.readline()
    os.kill(first.pid, signal.SIGKILL)
    first.communicate()
    yard.hold.unlink()
    second.communicate()
    assert second.returncode == 0
    assert len(yard.builds()) == 2
    assert yard.cached() == {"controlplane", "controlplane.lock"}


def test_failed_build_reports_one_line_and_keeps_log(yard: Yard) -> None:
    yard.fail.touch()
    asker = yard.ask()
    _, said = asker.communicate()
    assert asker.returncode == 1
    *_, last = said.splitlines()
    assert last.startswith(
        "compiling packages failed: main.go:1: no luck today; fix that and try again (the whole log is "
    )
    assert "some/module" in next(yard.cache.glob("*.log")).read_text()
    assert yard.cached() == {"controlplane.lock", "controlplane.log"}


def test_failed_build_can_be_retried(yard: Yard) -> None:
    yard.fail.touch()
    yard.ask().communicate()
    yard.fail.unlink()
    again = yard.ask()
    again.communicate()
    assert again.returncode == 0
    assert yard.cached() == {"controlplane", "controlplane.lock"}
