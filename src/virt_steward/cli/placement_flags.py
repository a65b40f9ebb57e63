"""Options of the placement, the same for `run` and for the commands that preview and explain placements."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated

import typer

from virt_steward.cli import completion
from virt_steward.cli.seconds import seconds_option
from virt_steward.controllers.placement.options import FleetTimeouts, PlacementRules, SearchTimeouts
from virt_steward.controllers.placement.strategies import STRATEGY_HELP, STRATEGY_NAMES
from virt_steward.settings import BadSetting, names_in

MACHINE = "{machine}"
NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")


class SearchMode(StrEnum):
    """When a VM that is found on a cluster decides the placement."""

    FOUND = "found"
    STRICT = "strict"


DefaultConfigOption = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="KubevirtConfig of Machines that name none.",
        autocompletion=completion.clusters,
        envvar="DEFAULT_KUBEVIRT_CONFIG",
    ),
]
StrategyOption = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help=f"How to choose if several clusters are suitable. {STRATEGY_HELP}.",
        autocompletion=completion.strategies,
        envvar="PLACEMENT_STRATEGY",
    ),
]
SearchOption = Annotated[
    SearchMode,
    typer.Option(help="strict: a VM that is found decides only after every cluster has answered."),
]
VmNameOption = Annotated[
    str,
    typer.Option(
        metavar="TEMPLATE[,TEMPLATE]",
        help="Name of a Machine's VM; if several are given, VMs of all these names are searched for.",
    ),
]
SpreadLabelOption = Annotated[
    str,
    typer.Option(
        metavar="LABEL", help="Label of KubevirtConfigs over whose values the strategy spread distributes Machines."
    ),
]
TimeoutOption = Annotated[float, seconds_option("Timeout of one cluster.")]
DeadlineOption = Annotated[float, seconds_option("Timeout of a search on all clusters.")]
MemoryOption = Annotated[float, seconds_option("How long the result of a search is cached.")]
RetryOption = Annotated[float, seconds_option("Longest time until an unreachable cluster is tried again.")]
ProbeOption = Annotated[float, seconds_option("Time between probes of a reachable cluster.")]


def rules(default_config: str, strategy: str, search: SearchMode, vm_name: str, spread_label: str) -> PlacementRules:
    """Check that the settings make sense."""
    if strategy not in STRATEGY_NAMES:
        raise BadSetting(f"--placement-strategy must be one of {', '.join(STRATEGY_NAMES)}, not {strategy!r}")
    for template in (templates := names_in(vm_name)):
        if MACHINE not in template or not NAME.fullmatch(template.replace(MACHINE, "m")):
            raise BadSetting(
                f"--vm-name {template!r} is not a valid template: write lower case around {MACHINE}, such as "
                f"vm-{MACHINE}"
            )
    if not spread_label:
        raise BadSetting("--spread-label is empty: name a label, such as topology.kubernetes.io/region")
    return PlacementRules(
        default_config, strategy, search is SearchMode.STRICT, spread_label, tuple(dict.fromkeys(templates))
    )


def patience(timeout: float, deadline: float, memory: float) -> SearchTimeouts:
    """Check that a cluster can answer before a search ends."""
    if timeout > deadline:
        raise BadSetting(
            f"--cluster-timeout {timeout:g} s is longer than --search-deadline {deadline:g} s: "
            "a slow cluster could never answer in time; make the deadline longer"
        )
    return SearchTimeouts(deadline, memory)


def limits(timeout: float, longest_retry: float) -> FleetTimeouts:
    return FleetTimeouts(timeout, min(FleetTimeouts().first_retry, longest_retry), longest_retry)
