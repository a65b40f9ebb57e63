"""What shells offer as arguments and options: names that the program knows, and objects of the cluster.

A key press must not wait or print anything: objects are asked for at most two seconds, and an error offers nothing.
"""

from __future__ import annotations

import asyncio
import io
import os
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING

import msgspec
import typer  # noqa: TC002 - typer reads the annotation at run time

from virt_steward.objects.meta import Existing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

PATIENCE = 2.0
"""Seconds until a cluster has answered."""
MOST = 500
"""Objects that are offered."""
# Where each kind is, so that only those are imported that are offered.
VIRT_PLATFORM_CONFIG = "virt_steward.apis.virtplatformconfig:VIRT_PLATFORM_CONFIG"
KUBEVIRT_CONFIG = "virt_steward.apis.kubevirtconfig:KUBEVIRT_CONFIG"
INSTALL_PLAN = "virt_steward.controllers.approver.olm:INSTALL_PLAN"
MACHINE = "virt_steward.controllers.placement.observation:MACHINE"
HYPERCONVERGED = "virt_steward.platform.hco:HYPERCONVERGED"


def typed_words(program: str) -> list[str] | None:
    """What was typed so far, after the name of the program, if a shell asks for completion; None if it does not."""
    if f"_{program}_COMPLETE".replace("-", "_").upper() not in os.environ:
        return None
    return (os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS") or "").split()[1:]


def profiles(incomplete: str) -> list[str]:
    from virt_steward.apis.profiles import OPTIONS_OF, PROFILES_WITHOUT_OPTIONS  # noqa: PLC0415 - only for this answer

    return _beginning(incomplete, (*OPTIONS_OF, *PROFILES_WITHOUT_OPTIONS))


def assets(incomplete: str) -> list[str]:
    """The folders of assets: to load the catalog would take too long."""
    from importlib.resources import files  # noqa: PLC0415 - only for this answer

    topics = (topic for topic in files("virt_steward.assets").iterdir() if topic.is_dir())
    found = (asset.name for topic in topics for asset in topic.iterdir() if (asset / "asset.yaml").is_file())
    return _beginning(incomplete, sorted(found))


def controllers(incomplete: str) -> list[str]:
    return _beginning(incomplete, _controllers())


def controller_list(incomplete: str) -> list[str]:
    """Complete the last name of a list with commas."""
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in _beginning(last, (*_controllers(), "console"))]


def strategies(incomplete: str) -> list[str]:
    from virt_steward.controllers.placement.strategies import STRATEGY_NAMES  # noqa: PLC0415 - only for this answer

    return _beginning(incomplete, STRATEGY_NAMES)


def objects(*kinds: str) -> Callable[[typer.Context, str], list[str]]:
    """Offer the objects of these kinds: NAMESPACE/NAME, or NAME where there is no namespace."""

    def offered(context: typer.Context, incomplete: str) -> list[str]:
        named = context.params
        from virt_steward import logs  # noqa: PLC0415 - only for this answer

        logs.configure("json", "error", io.StringIO())  # nothing may be printed
        with suppress(Exception):  # whatever it is, the command itself reports it
            return _beginning(incomplete, asyncio.run(_names(kinds, named.get("kubeconfig"), named.get("context"))))
        return []

    return offered


configs = objects(VIRT_PLATFORM_CONFIG)
clusters = objects(KUBEVIRT_CONFIG)
machines = objects(MACHINE)
machines_and_clusters = objects(MACHINE, KUBEVIRT_CONFIG)
install_plans = objects(INSTALL_PLAN)
platforms = objects(HYPERCONVERGED)


async def _names(kinds: Iterable[str], kubeconfig: str | None, context: str | None) -> list[str]:
    from virt_steward.app import connected  # noqa: PLC0415 - only for this answer
    from virt_steward.kube.client import Selection  # noqa: PLC0415

    found: list[str] = []
    async with asyncio.timeout(PATIENCE), connected(kubeconfig, context) as client:
        for place in kinds:
            module, _, name = place.partition(":")
            pages = client.pages(getattr(import_module(module), name), Selection(metadata_only=True), page=MOST)
            first = await anext(pages)
            found += [str(msgspec.json.decode(item, type=Existing).metadata.key) for item in first.items]
    return sorted(found)


def _controllers() -> tuple[str, ...]:
    from virt_steward.controllers import NAMES  # noqa: PLC0415 - only for this answer

    return NAMES


def _beginning(text: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith(text)]
