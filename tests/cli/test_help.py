"""Help fits into 80 columns, with every option in full."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
import typer
import typer.main
from typer.testing import CliRunner

from virt_steward.cli.main import load

WIDTH = 80
MARGIN = 2
"""Columns that are left free on a terminal, though not by the runner of tests."""
BROKEN_OPTION = re.compile(r"--[a-z-]*-$", re.MULTILINE)
APP = load(())


def commands(path: tuple[str, ...], command: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield path, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands((*path, name), inner)


COMMANDS = dict(commands((), typer.main.get_command(APP)))


@pytest.mark.parametrize("path", COMMANDS, ids=lambda path: "-".join(path) or "virt-steward")
def test_help_shows_every_option_whole_at_80_columns(path: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    monkeypatch.setenv("TERMINAL_WIDTH", str(WIDTH))
    result = CliRunner().invoke(APP, [*path, "--help"])
    assert result.exit_code == 0
    assert not [line for line in result.stdout.splitlines() if len(line) > WIDTH]
    assert "…" not in result.stdout
    assert not BROKEN_OPTION.findall(result.stdout)
    listed = result.stdout.partition("Options:")[2].split()
    options = [one for one in COMMANDS[path].params if isinstance(one, typer.core.TyperOption)]
    declared = {name for one in options for name in (*one.opts, *one.secondary_opts)}
    assert declared <= {word.rstrip(",") for word in listed}


@pytest.mark.parametrize("path", [path for path, one in COMMANDS.items() if hasattr(one, "commands")])
def test_help_summarizes_each_command_in_one_line(path: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    monkeypatch.setenv("TERMINAL_WIDTH", str(WIDTH))
    result = CliRunner().invoke(APP, [*path, "--help"], terminal_width=WIDTH - MARGIN)
    shown = result.stdout.partition("Commands:")[2]
    assert [row for row in shown.splitlines() if row.endswith("...")] == []
