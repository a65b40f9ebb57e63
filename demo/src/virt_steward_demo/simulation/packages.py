"""An operator catalog: packages, their versions, and the next version for each Subscription. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from virt_steward_demo.simulation.control_loop import SimulatedObject

CHANNEL = "stable"
CATALOG = "simulated-catalog"
CATALOG_NAMESPACE = "openshift-marketplace"


@dataclass(frozen=True, slots=True)
class OlmPackage:
    """An operator with its versions; each replaces the one before."""

    name: str
    versions: tuple[str, ...]
    needs: tuple[str, ...] = ()
    """Packages that it depends on."""

    def csvs(self) -> list[str]:
        return [f"{self.name}.v{version}" for version in self.versions]


@dataclass(frozen=True, slots=True)
class Bundle:
    """One version of one package."""

    csv: str
    package: OlmPackage
    version: str
    replaces: str


@dataclass(frozen=True, slots=True)
class Offer:
    """The content of an InstallPlan."""

    bundles: tuple[Bundle, ...]
    targets: Mapping[str, str]
    """The new CSV of each Subscription that gets one, by the name of the Subscription."""
    dependencies: tuple[Bundle, ...] = ()
    """The bundles without a Subscription."""


class OlmCatalog:
    def __init__(self, packages: Iterable[OlmPackage]) -> None:
        self._packages = {package.name: package for package in packages}
        self._bundles: dict[str, Bundle] = {}
        for package in self._packages.values():
            replaces = ""
            for csv, version in zip(package.csvs(), package.versions, strict=True):
                self._bundles[csv] = Bundle(csv, package, version, replaces)
                replaces = csv

    def offer(self, subscriptions: Sequence[SimulatedObject], installed: frozenset[str]) -> Offer | None:
        """All outdated operators of a namespace in one InstallPlan, as OLM does; None if nothing is new."""
        targets = {one.name: self._target(one) for one in subscriptions if one.spec.get("name") in self._packages}
        new = {one.name: targets[one.name] for one in subscriptions if self._is_new(one, targets.get(one.name))}
        if not new:
            return None
        bundles = [self._bundles[csv] for csv in dict.fromkeys(targets.values()) if csv not in installed]
        subscribed = {one.spec.get("name") for one in subscriptions}
        present = subscribed | {self._bundles[csv].package.name for csv in installed if csv in self._bundles}
        dependencies = self._missing(bundles, present)
        return Offer((*bundles, *dependencies), new, dependencies)

    def _target(self, subscription: SimulatedObject) -> str:
        status, package = subscription.status, self._packages[subscription.spec["name"]]
        current = status.get("currentCSV")
        if not current:
            start = subscription.spec.get("startingCSV")
            return str(start) if start in self._bundles else package.csvs()[-1]
        if status.get("installedCSV") != current:  # still pending, also in an older plan
            return str(current)
        return next((one for one in package.csvs() if self._bundles[one].replaces == current), str(current))

    def _is_new(self, subscription: SimulatedObject, target: str | None) -> bool:
        return target is not None and target != subscription.status.get("currentCSV")

    def _missing(self, bundles: Iterable[Bundle], present: set[str | None]) -> tuple[Bundle, ...]:
        missing: dict[str, Bundle] = {}
        queue = [name for bundle in bundles for name in bundle.package.needs]
        while queue:
            name = queue.pop()
            if name not in present and name not in missing:
                package = self._packages[name]
                missing[name] = self._bundles[package.csvs()[-1]]
                queue += package.needs
        return tuple(missing.values())
