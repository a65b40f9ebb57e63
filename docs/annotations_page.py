"""The page of annotations and labels: constants of the source, each with the text below it."""  # noqa: INP001 - beside a script

from __future__ import annotations

import ast
import re
from collections import defaultdict
from importlib import import_module
from typing import TYPE_CHECKING

from made import documented
from tables import NOTICE, codes, table

from virt_steward.catalog.asset import Install
from virt_steward.catalog.conditions import AnnotationCondition
from virt_steward.catalog.load import load
from virt_steward.objects.decision_record import DecisionKeys

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

KEY = re.compile(r"(advisor\.kubevirt\.io|platform\.kubevirt\.io|vitistack\.io|operators\.bapu\.cloud)/[a-z-]+")
PLACE = re.compile(r"(Label on|On) (.*?): (.*)", re.DOTALL)
SECTIONS = {
    "advisor.kubevirt.io": "Advisor",
    "platform.kubevirt.io": "Autopilot",
    "operators.bapu.cloud": "Approver",
    "vitistack.io": "Placement",
}
MEANINGS = DecisionKeys("{}", "Who decided; an admission policy holds it to the caller.", "When.", "Why.")
HEAD = """# Annotations and labels

What people set, and what the controllers record. Keys that name a person are held to the name of the caller where the
[admission policies](../explanation/security.md) are installed. Labels are marked; all others are annotations.
"""


def annotations(trees: Mapping[str, ast.Module]) -> str:
    keys = {key: row for module, tree in trees.items() for key, row in _of_module(module, tree)}
    sections = []
    for prefix, title in SECTIONS.items():
        rows = [(f"`{key}`", *row) for key, row in sorted(keys.items()) if key.startswith(f"{prefix}/")]
        sections.append(f"\n## {title}\n\n{table(('key', 'on', 'meaning'), rows)}")
    return f"{NOTICE}{HEAD}{''.join(sections)}{_opt_in()}"


def _of_module(module: str, tree: ast.Module) -> Iterator[tuple[str, tuple[str, str]]]:
    code = ast.unparse(tree)
    if not KEY.search(code) and "{PREFIX}" not in code:  # then there is no need to import it
        return
    for name, text in documented(tree):
        value = getattr(import_module(f"virt_steward.{module}"), name, None)
        if isinstance(value, DecisionKeys) and value.decision:
            place, meaning = _place(module, name, text)
            for key, pattern in zip(value, MEANINGS, strict=True):
                yield key, (place, pattern.format(meaning))
        elif isinstance(value, str) and KEY.fullmatch(value):
            yield value, _place(module, name, text)


def _place(module: str, name: str, text: str) -> tuple[str, str]:
    found = PLACE.match(" ".join(text.split()))
    if not found:
        raise SystemExit(f"{module}.{name} is a key that users see: write below it 'On WHAT: meaning.'")
    kind = "label on " if found[1].startswith("Label") else ""
    return f"{kind}{found[2]}", f"{found[3][:1].upper()}{found[3][1:]}"


def _opt_in() -> str:
    by_key: dict[str, list[str]] = defaultdict(list)
    for asset in load().assets:
        for one in asset.conditions:
            if isinstance(one, AnnotationCondition) and asset.install is Install.OPT_IN:
                by_key[f"{one.key}={one.value}" if one.value else one.key].append(asset.name)
    rows = ((f"`{key}`", codes(names)) for key, names in sorted(by_key.items()))
    head = "\n## Opting in to assets\n\nOn the HyperConverged. [Assets](assets.md) has what each of them does.\n\n"
    return f"{head}{table(('annotation', 'assets'), rows)}"
