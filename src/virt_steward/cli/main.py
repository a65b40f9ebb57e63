"""`virt-steward`: its commands, and how their errors reach a person: one line, never a traceback."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated

import typer
from typer.exceptions import TyperException

from virt_steward import __version__
from virt_steward.objects.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Sequence

DEMO = "virt_steward_demo"
# Where each command is. Only the one that is asked for gets imported: `run` need not carry what `plan` is made of.
COMMANDS = {
    "run": "virt_steward.cli.run:run",
    "demo": f"{DEMO}.cli.demo:demo",
    "plan": "virt_steward.cli.plan:plan",
    "explain": "virt_steward.cli.explain:app",
    "approve": "virt_steward.cli.approve:app",
    "place": "virt_steward.cli.place:place",
    "status": "virt_steward.cli.status:status",
    "render": "virt_steward.cli.render:render",
    "crds": "virt_steward.cli.generate:crds",
    "rbac": "virt_steward.cli.generate:rbac",
    "policies": "virt_steward.cli.generate:policies",
    "manifests": "virt_steward.cli.manifests:manifests",
    "local": f"{DEMO}.cli.local:app",
    "version": "virt_steward.cli.version:version",
}

app = typer.Typer(
    name="virt-steward",
    help="Governs everything around KubeVirt on a cluster.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
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


def load(wanted: Sequence[str]) -> typer.Typer:
    """The app with the commands that these words may mean: one of them, or all where help has to list them."""
    first = next((word for word in wanted if not word.startswith("-")), "")
    named: Sequence[str] = (first,) if first in COMMANDS else tuple(name for name in COMMANDS if _is_installed(name))
    for name in () if "--version" in wanted[:1] else named:
        if not _is_installed(name):
            raise UserError(f"{name} is not part of this installation; pip install 'virt-steward[demo]' adds it")
        module, _, attribute = COMMANDS[name].partition(":")
        command = getattr(import_module(module), attribute)
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name)
        else:
            app.command(name)(command)
    return app


def _is_installed(command: str) -> bool:
    return not COMMANDS[command].startswith(DEMO) or find_spec(DEMO) is not None


def main() -> None:
    try:
        sys.exit(load(sys.argv[1:])(standalone_mode=False) or 0)
    except UserError as error:
        sys.exit(f"virt-steward: {error}")
    except BaseExceptionGroup as group:  # of several tasks that ran at once
        if complaint := _complaint_in(group):
            sys.exit(f"virt-steward: {complaint}")
        raise
    except TyperException as error:  # the words of the command line are off
        if message := error.format_message().strip().rstrip("."):
            typer.echo(f"virt-steward: {message}; --help tells what there is", err=True)
        sys.exit(1)  # not 2: that is the answer of `plan` when something would change
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(130)
    except BrokenPipeError:  # `virt-steward crds | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complaint_in(group: BaseExceptionGroup[BaseException]) -> BaseException | None:
    """The first one, if there are no other errors: those would be bugs, and are shown in full."""
    complaints, others = group.split(UserError)
    if complaints is None or others is not None:
        return None
    first = complaints.exceptions[0]
    return _complaint_in(first) if isinstance(first, BaseExceptionGroup) else first
