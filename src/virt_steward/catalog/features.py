"""What the assets amount to for people: features, how mature each is, and how to get it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from virt_steward.catalog.asset import Install

if TYPE_CHECKING:
    from collections.abc import Iterable

    from virt_steward.catalog.asset import Asset

MATURITIES = ("GA", "TP", "DP")


class FeatureSummary(msgspec.Struct, frozen=True):
    """One feature, as it is listed."""

    name: str
    maturity: str
    install: Install
    opt_in: tuple[str, ...]
    """All keys by which a person asks for some of it."""
    requires: tuple[str, ...]
    assets: tuple[str, ...]


def features(assets: Iterable[Asset]) -> tuple[FeatureSummary, ...]:
    """The most mature first, then by name."""
    belonging: dict[str, list[Asset]] = {}
    for asset in assets:
        if asset.feature:
            belonging.setdefault(asset.feature.name, []).append(asset)
    found = (_summary(name, members) for name, members in belonging.items())
    return tuple(sorted(found, key=lambda one: (MATURITIES.index(one.maturity), one.name)))


def _summary(name: str, assets: list[Asset]) -> FeatureSummary:
    """As mature as its least mature asset, and always there if any part of it is."""
    declared = [asset.feature for asset in assets if asset.feature]
    always = any(asset.install is Install.ALWAYS for asset in assets)
    keys = (condition.asks_for for asset in assets if asset.install is Install.OPT_IN for condition in asset.conditions)
    return FeatureSummary(
        name,
        max((feature.maturity for feature in declared), key=MATURITIES.index),
        Install.ALWAYS if always else Install.OPT_IN,
        tuple(dict.fromkeys(key for key in keys if key)),
        tuple(dict.fromkeys(required for feature in declared for required in feature.requires)),
        tuple(asset.name for asset in assets),
    )
