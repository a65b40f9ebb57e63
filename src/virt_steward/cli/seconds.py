"""Options that take a time: a number of seconds, or a duration such as 1m30s."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import typer

from virt_steward.objects.durations import BadDuration, parse_duration

if TYPE_CHECKING:
    from collections.abc import Callable

DAY = 86_400.0
METAVAR = "SECONDS|DURATION"

_NUMBER = re.compile(r"[0-9]{1,20}([.][0-9]{0,20})?|[.][0-9]{1,20}")


def seconds_option(meaning: str, least: float = 0.1) -> Any:
    return typer.Option(metavar=METAVAR, parser=seconds(least), help=meaning)


def whole_seconds_option(meaning: str, least: int = 1) -> Any:
    return typer.Option(metavar=METAVAR, parser=whole_seconds(least), help=meaning)


def seconds(least: float) -> Callable[[str | float], float]:
    """The parser of such an option."""

    def parse(value: str | float) -> float:
        text = str(value)
        try:
            found = float(text) if _NUMBER.fullmatch(text) else parse_duration(text).total_seconds()
        except BadDuration as error:
            raise typer.BadParameter(f"{error}; a number alone means seconds") from None
        if not least <= found <= DAY:
            raise typer.BadParameter(f"{text} is not between {least:g} s and one day")
        return found

    return parse


def whole_seconds(least: int) -> Callable[[str | float], int]:
    def parse(value: str | float) -> int:
        found = seconds(least)(value)
        if not found.is_integer():
            raise typer.BadParameter(f"{value} is not a whole number of seconds")
        return int(found)

    return parse
