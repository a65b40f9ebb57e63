"""How commands print an answer: as text for people, or as JSON for programs."""

from __future__ import annotations

import os
import shutil
import sys
from enum import StrEnum
from textwrap import TextWrapper
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from virt_steward.kube.errors import one_line
from virt_steward.objects.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from virt_steward.objects.checks import CheckResult, Result

MARKS: Mapping[Result, str] = {"pass": "✓", "fail": "✗", "not reached": "\N{EN DASH}"}
ASCII_MARKS: Mapping[Result, str] = {"pass": "+", "fail": "x", "not reached": "-"}
WIDTH = 80
"""Columns of a text where no terminal says how many it has."""
NARROWEST = 30
"""Columns that sentences need to be readable."""


class CommandFailed(UserError):
    """The command did not do what the user requested; the text says why."""


class Output(StrEnum):
    """How an answer is printed."""

    TEXT = "text"
    JSON = "json"


OutputOption = Annotated[Output, typer.Option("--output", "-o", help="Output format.")]


def answer(output: Output, text: str, document: Any) -> None:
    """Print the text, or the document: an instance of the type that `documents.py` lists for the command."""
    typer.echo(encoded(document) if output is Output.JSON else text)


def encoded(document: Any) -> str:
    return msgspec.json.encode(document).decode()


def say(line: str) -> None:
    """Print progress to stderr: it is for people, and not part of the answer."""
    typer.echo(line, err=True)


def show(lines: Iterable[str], *, err: bool = False) -> None:
    """Print coloured lines; without colours if the output is no terminal or NO_COLOR is set."""
    typer.echo("\n".join(lines), err=err, color=False if os.environ.get("NO_COLOR") else None)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Columns as wide as they need to be; the last one may be of any length."""
    cells = [[name.upper() for name in head], *map(list, rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def wrapped_table(head: Sequence[str], rows: Iterable[Sequence[str]], indent: str = "") -> Iterator[str]:
    """A table whose last column holds sentences: wrapped beside the others, or below them where there is no room."""
    cells = [[name.upper() for name in head], *map(list, rows)]
    widths = [max(map(len, column)) for column in list(zip(*cells, strict=True))[:-1]]
    begin = len(indent) + sum(widths) + 2 * len(widths)
    is_beside = begin + NARROWEST <= shutil.get_terminal_size((WIDTH, 24)).columns
    for number, (*front, last) in enumerate(cells):
        start = indent + "  ".join(cell.ljust(width) for cell, width in zip(front, widths, strict=True))
        if is_beside:
            lines = wrapped(last, " " * begin)
            yield (f"{start}  {lines[0].lstrip()}" if lines else start).rstrip()
            yield from lines[1:]
        else:
            yield start.rstrip()
            yield from wrapped(last, f"{indent}  ") if number else ()


def wrapped(text: str, indent: str = "", hanging: str | None = None) -> list[str]:
    """Wrap one paragraph to the width of the terminal; names, paths and options are never broken."""
    width = shutil.get_terminal_size((WIDTH, 24)).columns
    following = indent if hanging is None else hanging
    wrapper = TextWrapper(
        width, initial_indent=indent, subsequent_indent=following, break_long_words=False, break_on_hyphens=False
    )
    return wrapper.wrap(one_line(text))


def check_lines(checks: Iterable[CheckResult], encoding: str | None = None) -> Iterator[str]:
    """Print a chain of checks: a mark, the title, the reason, and which one decided.

    An example is `✗ Prerequisites: KubeDescheduler CRD is missing. Stopped here`. Where the encoding of the output
    lacks the marks, there are others: `x` for this one.
    """
    marks = MARKS if _can_print("".join(MARKS.values()), encoding or sys.stdout.encoding) else ASCII_MARKS
    for check in checks:
        reason = check.reason or ("not reached" if check.result == "not reached" else "")
        text = f"{marks[check.result]} {check.title}" + (f": {reason}" if reason else "")
        if check.decided:
            text = f"{text.rstrip('.')}. {'Stopped here' if check.result == 'fail' else 'Decided here'}"
        yield from wrapped(text, "  ", "    ")


def _can_print(text: str, encoding: str) -> bool:
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True
