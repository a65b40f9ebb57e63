"""What a catalog offers to a namespace: packages, their versions, and what is next for each Subscription. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from virt_steward_demo.simulation.seen import SimulatedObject

CHANNEL = "stable"
CATALOG = "simulated-catalog"
CATALOG_NAMESPACE = "openshift-marketplace"


@dataclass(frozen=True, slots=True)
class OlmPackage:
    """An operator with its versions, each of which replaces the one before."""

    name: str
    versions: tuple[str, ...]
    needs: tuple[str, ...] = ()
    """Packages without which it does not run."""

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
    """The content of a plan."""

    bundles: tuple[Bundle, ...]
    targets: Mapping[str, str]
    """What is new to Subscriptions, by their names."""
    dependencies: tuple[Bundle, ...] = ()
    """Those among the bundles that nobody subscribed to."""


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
        """Everything that is not up to date, in one plan, as soon as anything is new to anybody."""
        targets = {one.name: self._target(one) for one in subscriptions if one.spec.get("name") in self._packages}
        news = {one.name: targets[one.name] for one in subscriptions if self._is_new(one, targets.get(one.name))}
        if not news:
            return None
        bundles = [self._bundles[csv] for csv in dict.fromkeys(targets.values()) if csv not in installed]
        subscribed = {one.spec.get("name") for one in subscriptions}
        present = subscribed | {self._bundles[csv].package.name for csv in installed if csv in self._bundles}
        dependencies = self._lacking(bundles, present)
        return Offer((*bundles, *dependencies), news, dependencies)

    def _target(self, subscription: SimulatedObject) -> str:
        status, package = subscription.status, self._packages[subscription.spec["name"]]
        current = status.get("currentCSV")
        if not current:
            start = subscription.spec.get("startingCSV")
            return str(start) if start in self._bundles else package.csvs()[-1]
        if status.get("installedCSV") != current:  # still pending: an older plan holds it too
            return str(current)
        return next((one for one in package.csvs() if self._bundles[one].replaces == current), str(current))

    def _is_new(self, subscription: SimulatedObject, target: str | None) -> bool:
        return target is not None and target != subscription.status.get("currentCSV")

    def _lacking(self, bundles: Iterable[Bundle], present: set[str | None]) -> tuple[Bundle, ...]:
        lacking: dict[str, Bundle] = {}
        queue = [name for bundle in bundles for name in bundle.package.needs]
        while queue:
            name = queue.pop()
            if name not in present and name not in lacking:
                package = self._packages[name]
                lacking[name] = self._bundles[package.csvs()[-1]]
                queue += package.needs
        return tuple(lacking.values())
