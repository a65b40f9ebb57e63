"""`virt-steward`: the table of its commands, and how their errors are printed: one line, never a traceback."""

from __future__ import annotations

import errno
import os
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer.exceptions import TyperException

from virt_steward import __version__
from virt_steward.cli.completion import typed_words
from virt_steward.cli.go_flags import translated
from virt_steward.cli.output import Output, OutputOption, answer, say
from virt_steward.objects.document import JsonDocument
from virt_steward.objects.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAM, PLUGIN = "virt-steward", "kubectl-virt_steward"
DEMO = "virt_steward_demo"
OUTPUT_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
# Where each command is. Only the given command is imported, so that `run` does not load what only `plan` needs.
COMMANDS = {
    "run": "virt_steward.cli.run:run",
    "demo": f"{DEMO}.cli.demo:demo",
    "inbox": "virt_steward.cli.inbox:inbox",
    "plan": "virt_steward.cli.plan:plan",
    "diff": "virt_steward.cli.diff:diff",
    "explain": "virt_steward.cli.explain:app",
    "approve": "virt_steward.cli.approve:app",
    "reject": "virt_steward.cli.decide:reject",
    "watch": "virt_steward.cli.watch:watch",
    "rollback": "virt_steward.cli.decide:rollback",
    "replan": "virt_steward.cli.decide:replan",
    "release": "virt_steward.cli.release:release",
    "resume": "virt_steward.cli.decide:resume",
    "choose": "virt_steward.cli.decide:choose",
    "place": "virt_steward.cli.place:place",
    "status": "virt_steward.cli.status:status",
    "switch-check": "virt_steward.cli.switch_check:switch_check",
    "render": "virt_steward.cli.render:render",
    "crds": "virt_steward.cli.manifests:crds",
    "rbac": "virt_steward.cli.manifests:rbac",
    "policies": "virt_steward.cli.manifests:policies",
    "roles": "virt_steward.cli.manifests:roles",
    "manifests": "virt_steward.cli.manifests:manifests",
    "uninstall": "virt_steward.cli.uninstall:uninstall",
    "local": f"{DEMO}.cli.local:app",
    "version": "virt_steward.cli.main:version",
}

app = typer.Typer(
    name=PROGRAM,
    help="Controllers around KubeVirt, and commands to preview, approve and explain what they do.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def options(
    *,
    show_version: Annotated[bool, typer.Option("--version", help="Print the version and exit.", is_eager=True)] = False,
) -> None:
    if show_version:
        typer.echo(f"virt-steward {__version__}")
        raise typer.Exit


class VersionDocument(JsonDocument, frozen=True):
    """The answer of `virt-steward version`."""

    version: str


def version(output: OutputOption = Output.TEXT) -> None:
    """Print the version."""
    answer(output, f"virt-steward {__version__}", VersionDocument(__version__))


def load(wanted: Sequence[str]) -> typer.Typer:
    """The app with the command that the arguments name, or with all commands if they name none."""
    first = next((word for word in wanted if not word.startswith("-")), "")
    named: Sequence[str] = (first,) if first in COMMANDS else tuple(name for name in COMMANDS if _is_installed(name))
    if first == "run":
        import_module("virt_steward.cli.lean_imports")
    for name in () if "--version" in wanted[:1] else named:
        if not _is_installed(name):
            raise UserError(f"{name} is not installed; add it with: pip install 'virt-steward[demo]'")
        module, _, attribute = COMMANDS[name].partition(":")
        command = getattr(import_module(module), attribute)
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name)
        else:
            app.command(name)(command)
    return app


def _app(program: str, given: list[str]) -> typer.Typer:
    """The app as it is needed. To complete the name of a command, no command need be imported."""
    typed = typed_words(program)
    if typed is None:
        return load(given)
    if typed and typed[0] in COMMANDS:
        return load(typed)
    for name in filter(_is_installed, COMMANDS):
        app.command(name)(lambda: None)
    return app


def _is_installed(command: str) -> bool:
    return not COMMANDS[command].startswith(DEMO) or find_spec(DEMO) is not None


def main() -> None:
    try:
        program = PLUGIN if Path(sys.argv[0]).name == PLUGIN else PROGRAM
        code = _app(program, sys.argv[1:])(_arguments(sys.argv[1:]), standalone_mode=False, prog_name=program) or 0
        sys.stdout.flush()  # here and not when the process ends, where an error could not be reported
        sys.exit(code)
    except UserError as error:
        sys.exit(f"virt-steward: {error}")
    except BaseExceptionGroup as group:  # raised by concurrent tasks
        if user_error := _user_error_in(group):
            sys.exit(f"virt-steward: {user_error}")
        raise
    except TyperException as error:  # wrong usage
        if message := error.format_message().strip().rstrip("."):
            typer.echo(f"virt-steward: {message}; see --help", err=True)
        sys.exit(1)  # not 2, by which `plan` says that something would change
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(130)
    except BrokenPipeError:  # `virt-steward crds | head`
        _drop_output()
    except OSError as error:  # `virt-steward crds > /mnt/full/crds.yaml`
        if error.errno not in OUTPUT_ERRORS:
            raise
        _drop_output()
        sys.exit(f"virt-steward: the output is incomplete: {error.strerror}")


def _drop_output() -> None:
    """What is still buffered cannot be written, and Python would try it once more at the end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _arguments(given: list[str]) -> list[str]:
    """Drop the flags of the Go operators that mean nothing here, so that a Deployment may keep them."""
    if given[:1] != ["run"]:
        return given
    kept, hints = translated(given[1:])
    for hint in hints:
        say(f"virt-steward: {hint}")
    return ["run", *kept]


def _user_error_in(group: BaseExceptionGroup[BaseException]) -> BaseException | None:
    """The first UserError, if there are only such errors: others are bugs, and are shown in full."""
    user_errors, others = group.split(UserError)
    if user_errors is None or others is not None:
        return None
    first = user_errors.exceptions[0]
    return _user_error_in(first) if isinstance(first, BaseExceptionGroup) else first
