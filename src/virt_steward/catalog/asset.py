"""One asset: what its folder declares, and the template of its one object. Features sum up several assets."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from virt_steward.catalog.conditions import Condition
from virt_steward.catalog.reads import NOTHING, Needs, Reads, kind_in
from virt_steward.platform.hco import HYPERCONVERGED

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from virt_steward.catalog.reads import ObjectRead
    from virt_steward.objects.identity import Kind

SERVED = "@served"
"""As an apiVersion: whichever version of the HCO's kind is served."""
MATURITIES = ("GA", "TP", "DP")
"""The most mature first."""
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")


class Install(StrEnum):
    """Whether an asset is installed by default, or only if a user opts in."""

    ALWAYS = "always"
    OPT_IN = "opt-in"


class AssetTarget(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Which object an asset is for."""

    api_version: str
    kind_name: str = msgspec.field(name="kind")
    plural: str
    name: str
    namespace: str = ""

    def __post_init__(self) -> None:
        if self.api_version == SERVED and self.kind_name != HYPERCONVERGED.name:
            raise ValueError(f"only a {HYPERCONVERGED.name} may have the apiVersion {SERVED}")

    @property
    def kind(self) -> Kind:
        if self.api_version == SERVED:
            return HYPERCONVERGED
        return kind_in(self.api_version, self.kind_name, self.plural)

    @property
    def version(self) -> str:
        return self.api_version.rpartition("/")[2]


class Feature(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What users know an asset by; several assets may belong to one feature."""

    name: str
    maturity: Literal["GA", "TP", "DP"]
    requires: tuple[str, ...] = ()


class Declaration(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The content of asset.yaml."""

    name: str
    summary: str
    object: AssetTarget
    feature: Feature | None = None
    """None: part of the autopilot itself."""
    group: str = ""
    phase: int = 1
    order: int = msgspec.field(name="reconcile_order", default=1)
    install: Install = Install.ALWAYS
    gate_crd: str = ""
    conditions: tuple[Condition, ...] = ()
    reads: Reads = NOTHING
    params: dict[str, Any] = {}
    files: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"{self.name!r} is not a valid name: use lower-case letters, digits and dashes")
        if (self.phase == 0) is not (self.object.kind == HYPERCONVERGED):
            raise ValueError(f"phase 0 is for the {HYPERCONVERGED.name} only")
        if self.install is Install.OPT_IN and not self.conditions:
            raise ValueError("an opt-in asset needs a condition to opt in by, such as an annotation")


class Asset(Declaration, frozen=True, kw_only=True):
    """A folder of the catalog, loaded."""

    template: str
    contents: dict[str, str]
    """The files beside it, by name."""
    path: str
    """Of the template, within the catalog."""

    def in_scope(self, names: Collection[str]) -> bool:
        """Whether an allow-list names it, or its group."""
        return self.name in names or (bool(self.group) and self.group in names)

    @property
    def reads_itself(self) -> ObjectRead | None:
        """What its template reads of the very object that it renders, if it does."""
        target = self.object
        own = (target.kind, target.namespace, target.name)
        return next((one for one in self.reads.objects.values() if (one.kind, one.namespace, one.name) == own), None)

    @property
    def needs(self) -> Needs:
        """All that its template and its conditions read."""
        return Needs.union((Needs.of(self.reads), *(condition.needs for condition in self.conditions)))


class FeatureSummary(msgspec.Struct, frozen=True):
    """One feature, as /debug/features lists it."""

    name: str
    maturity: str
    install: Install
    opt_in: tuple[str, ...]
    """All keys by which a user opts in to some of it."""
    requires: tuple[str, ...]
    assets: tuple[str, ...]


def features(assets: Iterable[Asset]) -> tuple[FeatureSummary, ...]:
    """Sum up the features of these assets, the most mature first, then by name."""
    belonging: dict[str, list[Asset]] = {}
    for asset in assets:
        if asset.feature:
            belonging.setdefault(asset.feature.name, []).append(asset)
    found = (_summary(name, members) for name, members in belonging.items())
    return tuple(sorted(found, key=lambda one: (MATURITIES.index(one.maturity), one.name)))


def _summary(name: str, assets: list[Asset]) -> FeatureSummary:
    """A feature is as mature as its least mature asset, and always installed if any of its assets is."""
    declared = [asset.feature for asset in assets if asset.feature]
    always = any(asset.install is Install.ALWAYS for asset in assets)
    keys = (
        condition.opt_in_key for asset in assets if asset.install is Install.OPT_IN for condition in asset.conditions
    )
    return FeatureSummary(
        name,
        max((feature.maturity for feature in declared), key=MATURITIES.index),
        Install.ALWAYS if always else Install.OPT_IN,
        tuple(dict.fromkeys(key for key in keys if key)),
        tuple(dict.fromkeys(required for feature in declared for required in feature.requires)),
        tuple(asset.name for asset in assets),
    )
