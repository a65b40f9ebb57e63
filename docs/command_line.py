"""The pages of the command line: commands, settings of `run`, and exit codes."""  # noqa: INP001 - beside a script

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

import typer
import typer.main
from tables import NOTICE, codes, table

from virt_steward.cli.main import load

if TYPE_CHECKING:
    from collections.abc import Iterator

SETTINGS = """# The settings of a process

`virt-steward run` reads its settings once, from flags and from the environment; a flag wins. An unknown flag is an
error. Flags of the Go operators that have no meaning here are accepted and reported. The files that some flags name
are described in [notify people](../howto/notify-people.md), [hold changes back](../howto/hold-changes-back.md) and
[read the metrics](../howto/read-the-metrics.md).
"""
EXIT_CODES = """# Exit codes

| code | for every command |
| --- | --- |
| 0 | it is done, or there is nothing to do |
| 1 | it failed, was used wrongly, or cannot tell; standard error says why in one line |
| 130 | it was interrupted (Ctrl-C) |

A script that runs with `set -e` or `pipefail` stops at 2 as well; compare with 2 where that is an answer.

## By command

"""
SENTENCE = re.compile(r"((?:The )?[Ee]xit code.*?\.)(?: [A-Z]|$)", re.DOTALL)


def command_line() -> str:
    sections = "\n".join(_section(path, command) for path, command in _commands("virt-steward", _root()))
    return f"{NOTICE}# The command line\n\n{sections}"


def settings() -> str:
    run = next(command for path, command in _commands("virt-steward", _root()) if path == "virt-steward run")
    rows = [_setting(one) for one in run.params if one.param_type_name == "option" and one.name != "help"]
    return f"{NOTICE}{SETTINGS}\n{table(('flag', 'environment', 'default', 'meaning'), rows)}"


def exit_codes() -> str:
    rows = [
        (f"[`{path}`](cli.md#{path.replace(' ', '-')})", " ".join(found[1].split()))
        for path, command in _commands("virt-steward", _root())
        if (found := SENTENCE.search(" ".join((command.help or "").split())))
    ]
    return f"{NOTICE}{EXIT_CODES}{table(('command', 'meaning'), rows)}"


@cache
def _root() -> Any:
    return typer.main.get_command(load(()))


def _commands(path: str, command: Any) -> Iterator[tuple[str, Any]]:
    yield path, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from _commands(f"{path} {name}", inner)


def _section(path: str, command: Any) -> str:
    context = typer.Context(command)
    records = [parameter.get_help_record(context) for parameter in command.params]
    rows = [(f"`{names}`", meaning) for names, meaning in filter(None, records)]
    head = f"## {path}\n\n{command.help or ''}\n"
    return f"{head}\n{table(('parameter', 'meaning'), rows)}" if rows else head


def _setting(option: Any) -> tuple[str, ...]:
    variables = [option.envvar] if isinstance(option.envvar, str) else option.envvar or ()
    default = option.default() if callable(option.default) else option.default
    shown = "" if default in (None, (), "") else f"`{getattr(default, 'value', default)}`"
    return codes((*option.opts, *option.secondary_opts)), codes(variables), shown, option.help or ""
