"""The commands of a build."""

import os
from pathlib import Path

import pytest

from tests.local.test_processes import is_running
from virt_steward_demo.local import LocalError
from virt_steward_demo.local.build import BuildSteps
from virt_steward_demo.local.progress import ProgressPrinter


class Impatient(ProgressPrinter):
    """Gives up as soon as there is something to show."""

    def show(self, phase: str, done: int, total: int | None) -> None:
        super().show(phase, done, total)
        if done:
            raise KeyboardInterrupt


def steps_in(folder: Path, narrator: ProgressPrinter) -> BuildSteps:
    return BuildSteps(folder, os.environ, folder / "log", narrator)


def test_interrupted_step_leaves_no_process(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        steps_in(tmp_path, Impatient()).run("sleeping", ["/bin/sh", "-c", "echo $$; exec sleep 60"])
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
