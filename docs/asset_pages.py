"""The page of the autopilot's assets, from their declarations."""  # noqa: INP001 - beside a script

from __future__ import annotations

import re
from collections import defaultdict
from inspect import getdoc
from typing import TYPE_CHECKING

from tables import NOTICE, codes, escaped, table

from virt_steward.catalog.aliases import ALIASES
from virt_steward.catalog.asset import Install, features
from virt_steward.catalog.conditions import AnnotationCondition
from virt_steward.catalog.load import load
from virt_steward.controllers.autopilot.overrides.patch import REFUSED_KINDS
from virt_steward.controllers.autopilot.rollouts.policy import REBOOTING
from virt_steward.platform.hco import PREFIX

if TYPE_CHECKING:
    from collections.abc import Iterable

    from virt_steward.catalog.asset import Asset

SETTING = re.compile(rf"{re.escape(PREFIX)}[a-z-]+")
HEAD = f"""# Assets

Each asset is one object that the autopilot keeps at best practice. It is applied if the autopilot is on, the
allow-list (`{PREFIX}autopilot`) does not leave it out, the kind is installed, and all of its conditions hold.
`virt-steward explain asset NAME` shows for your cluster which of them do.

**Reboots nodes** means that its kind is rolled out by the machine config operator, which reboots the nodes of a
pool one after the other. Such changes are staged ([stage node reboots](../howto/stage-node-reboots.md)), and
`virt-steward diff` says which nodes.

Every object takes the same overrides ([override the autopilot](../howto/override-the-autopilot.md)): on the object
itself the annotations `{PREFIX}mode`, `{PREFIX}patch`, `{PREFIX}ignore-fields` and `{PREFIX}drift`, on the
HyperConverged a rule in `{PREFIX}disabled-resources`. Kinds that grant rights cannot be patched; that is said
below.

## Features

GA is generally available, TP a technology preview, DP a developer preview.

"""


def assets() -> str:
    catalog = load()
    topics: dict[str, list[Asset]] = defaultdict(list)
    for asset in sorted(catalog.assets, key=lambda one: (one.path.split("/")[0], one.name)):
        topics[asset.path.split("/")[0]].append(asset)
    sections = "".join(f"\n## {topic}\n\n{''.join(map(_asset, ours))}" for topic, ours in topics.items())
    return f"{NOTICE}{HEAD}{_features(catalog.assets)}{sections.rstrip()}\n"


def _features(found: Iterable[Asset]) -> str:
    rows = (
        (
            one.name,
            one.maturity,
            ", ".join(one.requires),
            "always" if one.install is Install.ALWAYS else codes(one.opt_in),
            ", ".join(f"[{name}](#{name})" for name in one.assets),
        )
        for one in features(found)
    )
    return table(("feature", "maturity", "needs", "applied", "assets"), rows)


def _asset(asset: Asset) -> str:
    target = asset.object
    where = "the namespace of the HyperConverged" if target.namespace == "@hco" else f"`{target.namespace}`"
    place = f" in {where}" if target.namespace else ""
    rows = [("object", f"{target.kind.name} `{target.name}`{place}"), ("applied", _applied(asset))]
    others = [one for one in asset.conditions if not (asset.install is Install.OPT_IN and one.opt_in_key)]
    if others:
        rows.append(("conditions", "; ".join(f"{escaped(str(one))}: {_meaning(one)}" for one in others)))
    if asset.gate_crd:
        rows.append(("only with the CRD", f"`{asset.gate_crd}`"))
    rows.append(("impact", "**reboots nodes**" if target.kind in REBOOTING else "reboots no node"))
    if settings := _settings(asset):
        rows.append(("settings on the HyperConverged", codes(settings)))
    if asset.group:
        rows.append(("group in an allow-list", f"`{asset.group}`"))
    if former := [old for old, new in ALIASES.items() if new == asset.name]:
        rows.append(("also known as", codes(former)))
    if target.kind.name in REFUSED_KINDS:
        rows.append(("override", "cannot be patched, since it grants rights"))
    return f"### {asset.name}\n\n{asset.summary}\n\n{table(('', ''), rows)}\n"


def _applied(asset: Asset) -> str:
    if asset.install is Install.ALWAYS:
        return "always, unless an override says otherwise"
    return f"if you opt in: {' and '.join(f'`{one.opt_in_key}`' for one in asset.conditions if one.opt_in_key)}"


def _meaning(condition: object) -> str:
    text = (getdoc(type(condition)) or "").partition("\n")[0].rstrip(".")
    return f"{text[:1].lower()}{text[1:]}"


def _settings(asset: Asset) -> list[str]:
    """Annotations that the template reads, besides those to opt in by."""
    opt_in = {one.key for one in asset.conditions if isinstance(one, AnnotationCondition)}
    read = set(re.findall(rf"hco\.(?:annotation|is_true)\('({SETTING.pattern})'", asset.template))
    return sorted(read - opt_in - {f"{PREFIX}autopilot"})
