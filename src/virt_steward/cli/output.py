"""How commands print an answer: as text for people, or as JSON for programs."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import msgspec
import typer

from virt_steward.objects.complaints import Complaint


class NotDone(Complaint):
    """What was asked for was not done, or did not end well: one line that says why."""


class Output(StrEnum):
    """How an answer is printed."""

    TEXT = "text"
    JSON = "json"


OutputOption = Annotated[Output, typer.Option("--output", "-o", help="How to print the answer.")]


def answer(output: Output, text: str, document: Any) -> None:
    typer.echo(msgspec.json.encode(document).decode() if output is Output.JSON else text)
