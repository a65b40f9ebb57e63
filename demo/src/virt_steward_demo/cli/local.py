"""`virt-steward local`: a control plane on this machine."""

import os
import shlex
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from virt_steward.cli.output import Output, OutputOption, answer
from virt_steward.objects.document import JsonDocument
from virt_steward_demo.local import LocalError
from virt_steward_demo.local.binaries import find_or_build
from virt_steward_demo.local.files import state_folder
from virt_steward_demo.local.progress import ProgressPrinter
from virt_steward_demo.local.session import ClusterRunning, LocalSession, Starting, Status, Stopped

app = typer.Typer(
    name="local", help="A real control plane on this machine, for tests and trials.", no_args_is_help=True
)


class KubeconfigDocument(JsonDocument, frozen=True):
    """The answer of `virt-steward local kubeconfig`."""

    path: str
    content: dict[str, Any] | None
    """Only with --raw."""


class BinariesDocument(JsonDocument, frozen=True):
    """The answer of `virt-steward local assets`."""

    folder: str


DOCUMENTS: dict[str, Any] = {
    "local up": ClusterRunning,
    "local down": Stopped,
    "local status": Status,
    "local kubeconfig": KubeconfigDocument,
    "local assets": BinariesDocument,
}
"""The type of the answer of each command with -o json."""


@app.command()
def up(
    *,
    keep_data: Annotated[
        bool, typer.Option("--keep-data", help="Keep the data for the next `up --keep-data`.")
    ] = False,
    data_dir: Annotated[Path | None, typer.Option(help="Keep the data in this folder.")] = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Start the control plane, and return when it is ready.

    eval "$(virt-steward local up)" points kubectl at it.
    """
    session, progress = _session(), ProgressPrinter()
    wanted = data_dir.absolute() if data_dir else session.kept_data if keep_data else None
    match session.status():
        case ClusterRunning() as running if wanted and Path(running.data) != wanted:
            raise LocalError(
                f"a control plane with data in {running.data} is running: stop it with 'virt-steward local down' first"
            )
        case ClusterRunning() as running:
            progress.say(f"the control plane is already running, since {running.since}")
        case Starting() | Stopped():
            running = session.up(find_or_build(os.environ, progress), wanted)
            progress.say(f"the control plane {running.version} is ready at {running.server}")
    answer(output, f"export KUBECONFIG={shlex.quote(running.kubeconfig)}", running)


@app.command()
def down(output: OutputOption = Output.TEXT) -> None:
    """Stop the control plane.

    Its data is deleted unless it was started with --keep-data or --data-dir.
    """
    match _session().down():
        case ClusterRunning(kept=True, data=data):
            text = f"stopped; its data is kept in {data}"
        case ClusterRunning() | Starting():
            text = "stopped"
        case Stopped():
            text = "not running"
    answer(output, text, Stopped())


@app.command()
def status(output: OutputOption = Output.TEXT) -> None:
    """Show whether the control plane runs, and where. The exit code is 1 if it does not run."""
    found = _session().status()
    answer(output, _described(found), found)
    if not isinstance(found, ClusterRunning):
        raise typer.Exit(1)


@app.command()
def kubeconfig(
    *,
    raw: Annotated[bool, typer.Option("--raw", help="Print the content instead of the path.")] = False,
    output: OutputOption = Output.TEXT,
) -> None:
    """Print the path of the kubeconfig of the running control plane."""
    match _session().status():
        case ClusterRunning(kubeconfig=path):
            content = Path(path).read_text()
            document = KubeconfigDocument(path, msgspec.yaml.decode(content) if raw else None)
            answer(output, content.rstrip() if raw else path, document)
        case Starting() | Stopped():
            raise LocalError("no control plane is running: start one with 'virt-steward local up'")


@app.command()
def assets(output: OutputOption = Output.TEXT) -> None:
    """Print the folder of the control plane's binaries.

    They are etcd, kube-apiserver and kube-controller-manager, and are built first if needed.
    """
    folder = find_or_build(os.environ, ProgressPrinter()).folder
    answer(output, str(folder), BinariesDocument(str(folder)))


def _session() -> LocalSession:
    return LocalSession(state_folder(os.environ) / "local")


def _described(found: Status) -> str:
    match found:
        case Stopped():
            return "not running"
        case Starting():
            return "starting"
        case ClusterRunning():
            processes = ", ".join(f"{name} {pid}" for name, pid in found.pids.items())
            data = f"{found.data} ({'kept' if found.kept else 'deleted on stop'})"
            return (
                f"running     since {found.since}\n"
                f"version     {found.version}\n"
                f"server      {found.server}\n"
                f"kubeconfig  {found.kubeconfig}\n"
                f"data        {data}\n"
                f"processes   {processes}"
            )
