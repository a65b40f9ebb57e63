"""How commands print an answer: as text for people, or as JSON for programs."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from virt_steward.objects.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


class CommandFailed(UserError):
    """What was asked for was not done, or did not end well: one line that says why."""


class Output(StrEnum):
    """How an answer is printed."""

    TEXT = "text"
    JSON = "json"


OutputOption = Annotated[Output, typer.Option("--output", "-o", help="How to print the answer.")]


def answer(output: Output, text: str, document: Any) -> None:
    typer.echo(msgspec.json.encode(document).decode() if output is Output.JSON else text)


def say(line: str) -> None:
    """Progress is for people, and not part of the answer."""
    typer.echo(line, err=True)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Columns as wide as they need to be; the last one may be of any length."""
    cells = [[name.upper() for name in head], *map(list, rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
