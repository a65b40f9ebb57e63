"""What several commands take: which cluster, which object, the consent of a person, and the connection."""

from __future__ import annotations

import signal
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from virt_steward import logs
from virt_steward.app import connected
from virt_steward.cli import completion
from virt_steward.cli.output import CommandFailed, say
from virt_steward.kube.client import Reader
from virt_steward.objects.identity import Key
from virt_steward.objects.quoting import quoted
from virt_steward.settings import BadSetting

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from virt_steward.kube.client import Client

KubeconfigOption = Annotated[
    str | None,
    typer.Option(
        "--kubeconfig",
        metavar="FILE",
        help="Path of a kubeconfig, instead of $KUBECONFIG, ~/.kube/config or the pod's service account.",
    ),
]
ContextOption = Annotated[
    str | None, typer.Option("--context", metavar="NAME", help="Context to use instead of the current one.")
]
InstallPlanArgument = Annotated[
    str, typer.Argument(metavar="NAMESPACE/NAME", help="The InstallPlan.", autocompletion=completion.install_plans)
]
ProfileArgument = Annotated[
    str,
    typer.Argument(
        metavar="PROFILE",
        help="Name of the profile; its VirtPlatformConfig has the same name.",
        autocompletion=completion.profiles,
    ),
]
ProfilesArgument = Annotated[
    list[str], typer.Argument(metavar="PROFILE...", help="Names of profiles.", autocompletion=completion.configs)
]
AssetArgument = Annotated[
    str,
    typer.Argument(
        metavar="NAME", help="Name of the asset; `render -o status` lists them.", autocompletion=completion.assets
    ),
]
MachineArgument = Annotated[
    str, typer.Argument(metavar="NAMESPACE/NAME", help="The Machine.", autocompletion=completion.machines)
]
CommentOption = Annotated[str, typer.Option(metavar="TEXT", help="Why; recorded with the decision.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]

ClusterChoice = tuple[str | None, str | None]
"""The kubeconfig and the context, as given; None where they are not."""

CANCELLED = "Cancelled; nothing was changed"


def require_consent(question: str, *, is_given: bool, binding: str) -> None:
    """Ask on a terminal; elsewhere only an option counts. What comes through a pipe is nobody's consent.

    `binding` is the option that names what was reviewed, such as `--plan HASH`: who gives it need not be asked.
    """
    if is_given:
        return
    if not sys.stdin.isatty():
        raise CommandFailed(f"Nothing was changed: there is no terminal to ask on. Add --yes or {binding}")
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)  # asyncio's own would wait for the answer
    try:
        if not typer.confirm(question, err=True):
            raise CommandFailed(CANCELLED)
    except typer.Abort:
        say(f"\n{CANCELLED}")
        raise
    finally:
        signal.signal(signal.SIGINT, handler)


def namespaced(text: str) -> Key:
    """Read `namespace/name`."""
    key = Key.parse(text)
    if not key.namespace or not key.name:
        raise BadSetting(f"{quoted(text)} is not the name of a namespaced object: write NAMESPACE/NAME")
    return key


@asynccontextmanager
async def quiet_client(kubeconfig: str | None, context: str | None) -> AsyncIterator[Client]:
    """A client for a command whose answer reports what fails, so that warnings in the log would only repeat it."""
    logs.configure("auto", "error")
    async with connected(kubeconfig, context) as client:
        yield client


@asynccontextmanager
async def quiet_reader(kubeconfig: str | None, context: str | None) -> AsyncIterator[Reader]:
    """The same, for commands that only read."""
    async with quiet_client(kubeconfig, context) as client:
        yield Reader(client.connection, client.discovery)
