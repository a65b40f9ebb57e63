"""A report as text: manifests that kubectl takes, JSON for programs, a table for people."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import msgspec

from virt_steward.catalog.report import AssetStatus
from virt_steward.objects.yamltext import yaml_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from virt_steward.catalog.report import AssetReport

ROW = "{:<30} {:<15} {:<20} {}"
LONGEST_REASON = 35


def as_yaml(lines: Iterable[AssetReport]) -> str:
    """One document for each; what is said about it stands in comments."""
    return "---\n".join(_document(line) for line in lines)


def as_json(lines: Iterable[AssetReport]) -> str:
    listed = [line.document() for line in lines]
    return msgspec.json.format(msgspec.json.encode(listed), indent=2).decode() + "\n"


def as_table(lines: Iterable[AssetReport]) -> str:
    known = tuple(lines)
    return "\n".join((*_rows(known), "", _summary(known), ""))


def _document(line: AssetReport) -> str:
    facts = (
        ("Asset", line.asset.name),
        ("Path", line.asset.path),
        ("Component", line.asset.object.kind.name),
        ("Status", line.status.value),
        ("Reason", line.reason),
        *line.details.items(),
    )
    head = "".join(f"# {name}: {' '.join(text.split())}\n" for name, text in facts if text)
    return head + (yaml_text(line.object) if line.object else "")


def _rows(lines: Iterable[AssetReport]) -> Iterator[str]:
    yield ROW.format("ASSET", "STATUS", "COMPONENT", "REASON")
    for line in lines:
        yield ROW.format(line.asset.name, line.status, line.asset.object.kind.name, _short(line.reason)).rstrip()


def _short(reason: str) -> str:
    return reason if len(reason) <= LONGEST_REASON else f"{reason[: LONGEST_REASON - 1]}…"


def _summary(lines: Iterable[AssetReport]) -> str:
    count = Counter(line.status for line in lines)
    return (
        f"Summary: {count[AssetStatus.INCLUDED]} included, {count[AssetStatus.EXCLUDED]} excluded, "
        f"{count[AssetStatus.FILTERED]} filtered, {count[AssetStatus.ERROR]} errors"
    )
