"""Arguments that several commands take: which cluster, and which object."""

from __future__ import annotations

from typing import Annotated

import typer

from virt_steward.objects.identity import Key
from virt_steward.settings import BadSetting

KubeconfigOption = Annotated[
    str | None,
    typer.Option("--kubeconfig", metavar="FILE", help="Instead of $KUBECONFIG, ~/.kube/config or the pod's account."),
]
ContextOption = Annotated[str | None, typer.Option("--context", help="Instead of the current context.")]
PlanArgument = Annotated[str, typer.Argument(metavar="NAMESPACE/NAME", help="The InstallPlan.")]
ProfileArgument = Annotated[
    str, typer.Argument(metavar="PROFILE", help="The profile, which its VirtPlatformConfig is named for.")
]
AssetArgument = Annotated[str, typer.Argument(metavar="NAME", help="The asset.")]
MachineArgument = Annotated[str, typer.Argument(metavar="NAMESPACE/NAME", help="The Machine.")]


def namespaced(text: str) -> Key:
    """Read `namespace/name`."""
    key = Key.parse(text)
    if not key.namespace or not key.name:
        raise BadSetting(f"{text!r} names no object in a namespace: write NAMESPACE/NAME")
    return key
