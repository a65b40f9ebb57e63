"""Options that bear on the choice of a cluster; commands that foretell a choice take the same ones as `run`."""

from __future__ import annotations

import re
from enum import StrEnum
from math import isnan
from typing import Annotated, Any

import typer

from virt_steward.controllers.placement.options import FleetTimeouts, PlacementRules, SearchTimeouts
from virt_steward.controllers.placement.strategies import STRATEGY_HELP, STRATEGY_NAMES
from virt_steward.settings import BadSetting

PANEL = "Placement"
MACHINE = "{machine}"
DAY = 86_400.0
NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")


class SearchMode(StrEnum):
    """When a VM that was found settles the matter."""

    FOUND = "found"
    STRICT = "strict"


def _seconds(meaning: str) -> Any:
    return typer.Option(metavar="SECONDS", min=0.1, max=DAY, callback=_a_number, help=meaning, rich_help_panel=PANEL)


def _a_number(value: float) -> float:
    if isnan(value):  # it is neither too small nor too large
        raise BadSetting("nan is no number of seconds: write one such as 5")
    return value


DefaultConfigOption = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="The KubevirtConfig of machines that name none.",
        envvar="DEFAULT_KUBEVIRT_CONFIG",
        rich_help_panel=PANEL,
    ),
]
StrategyOption = Annotated[
    str,
    typer.Option(
        metavar="|".join(STRATEGY_NAMES),
        help=f"How to choose among clusters that are all suitable. {STRATEGY_HELP}.",
        envvar="PLACEMENT_STRATEGY",
        rich_help_panel=PANEL,
    ),
]
SearchOption = Annotated[
    SearchMode,
    typer.Option(
        help="strict: a VM that was found counts only when every cluster has answered.", rich_help_panel=PANEL
    ),
]
VmNameOption = Annotated[
    str, typer.Option(metavar="TEMPLATE", help="What the VM of a machine is called.", rich_help_panel=PANEL)
]
SpreadLabelOption = Annotated[
    str,
    typer.Option(metavar="LABEL", help="Of KubevirtConfigs: the strategy spread evens it out.", rich_help_panel=PANEL),
]
TimeoutOption = Annotated[float, _seconds("Seconds that one cluster gets to answer.")]
DeadlineOption = Annotated[float, _seconds("Seconds that a search of all clusters may take.")]
MemoryOption = Annotated[float, _seconds("Seconds for which a cluster's answer is remembered.")]
RetryOption = Annotated[float, _seconds("The longest pause before a silent cluster is asked again, in seconds.")]
ProbeOption = Annotated[float, _seconds("Seconds between two looks at a cluster that answers.")]


def rules(default_config: str, strategy: str, search: SearchMode, vm_name: str, spread_label: str) -> PlacementRules:
    """Check that the settings make sense."""
    if strategy not in STRATEGY_NAMES:
        raise BadSetting(
            f"--placement-strategy: there is none called {strategy!r}; use one of {', '.join(STRATEGY_NAMES)}"
        )
    if MACHINE not in vm_name or not NAME.fullmatch(vm_name.replace(MACHINE, "m")):
        raise BadSetting(
            f"--vm-name {vm_name!r} gives no name to VMs: write lower case around {MACHINE}, as vm-{MACHINE}"
        )
    if not spread_label:
        raise BadSetting("--spread-label: a label has a name, such as topology.kubernetes.io/region")
    return PlacementRules(default_config, strategy, search is SearchMode.STRICT, spread_label, vm_name)


def patience(timeout: float, deadline: float, memory: float) -> SearchTimeouts:
    """Check that a cluster can answer before a search ends."""
    if timeout > deadline:
        raise BadSetting(
            f"--cluster-timeout {timeout:g} s is longer than --search-deadline {deadline:g} s: "
            "a slow cluster would never be heard; let the deadline be the longer one"
        )
    return SearchTimeouts(deadline, memory)


def limits(timeout: float, longest_retry: float) -> FleetTimeouts:
    return FleetTimeouts(timeout, min(FleetTimeouts().first_retry, longest_retry), longest_retry)
