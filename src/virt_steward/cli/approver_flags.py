"""Options of the approver: the namespaces whose InstallPlanApprovers decide for others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from virt_steward.controllers.approver.options import ApproverOptions
from virt_steward.holds.gate_settings import READY_MADE_ONLY
from virt_steward.settings import BadSetting, names_in

if TYPE_CHECKING:
    from collections.abc import Collection

    from virt_steward.holds.gate_settings import GateSettings

PolicyNamespacesOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME[,NAME]",
        help="Namespaces, besides --namespace, whose InstallPlanApprovers cover what their spec says."
        " Others cover their own namespace alone.",
    ),
]
InstallationOption = Annotated[
    str, typer.Option("--namespace", metavar="NAME", help="Namespace of the controllers.", envvar="POD_NAMESPACE")
]


def policy_namespaces(text: str | None) -> tuple[str, ...]:
    """Read --policy-namespaces."""
    names = () if text is None else names_in(text)
    if not all(names):
        raise BadSetting("--policy-namespaces: a namespace name is empty; write the names with commas between them")
    return tuple(dict.fromkeys(names))


def options(
    namespace: str, named: str | None, watched: Collection[str] = (), gates: GateSettings = READY_MADE_ONLY
) -> ApproverOptions:
    """Raises BadSetting if a policy namespace is not watched: what its approvers hold would be approved by others."""
    names = policy_namespaces(named)
    if left_out := [name for name in names if watched and name not in watched]:
        raise BadSetting(f"--policy-namespaces: add {', '.join(left_out)} to --watch-namespaces too")
    return ApproverOptions(frozenset({namespace, *names}), namespace, gates)
