"""Logging: one event per line with its facts, as JSON or, on a terminal, in colour."""

from __future__ import annotations

import logging
import re
import sys
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, TextIO

import msgspec
import structlog

from virt_steward.objects.wallclock import rfc3339_micro
from virt_steward.runtime import log_context

if TYPE_CHECKING:
    from structlog.typing import EventDict, Processor, WrappedLogger

Format = Literal["auto", "json", "console"]
Level = Literal["debug", "info", "warning", "error"]

_HIDDEN = "[redacted]"
_SECRET_KEY = re.compile(
    r"token|authorization|passw|secret|credential|kubeconfig|private.?key|key.?data|cookie", re.IGNORECASE
)
# In any text: a bearer token, a JWT, a password within a URL.
_SECRET_TEXT = re.compile(r"(?i)(?<=bearer )\S+|eyJ[\w-]+\.[\w-]+\.[\w-]+|(?<=://)[^/@\s]+(?=@)")
_SECRET_MARKS = ("bearer ", "eyj", "://")


def configure(format: Format, level: Level, stream: TextIO = sys.stderr) -> None:  # noqa: A002 - the flag's name
    """Write all logs, also those of libraries, to the stream. `auto` is colour on a terminal, else JSON."""
    as_json = format == "json" or (format == "auto" and not stream.isatty())
    first: list[Processor] = [
        log_context.add_facts,
        structlog.processors.add_log_level,
        _timed,
        structlog.processors.format_exc_info,  # as text: the console renderer would show local variables
    ]
    last: list[Processor] = [redact, *_rendering(as_json=as_json, colors=stream.isatty())]
    structlog.configure(
        processors=[*first, *last],
        wrapper_class=structlog.make_filtering_bound_logger(_number(level)),
        logger_factory=lambda *_: _Lines(stream),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=first,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *last],
        )
    )
    logging.basicConfig(handlers=[handler], level=_number(level), force=True)


class _Lines:
    """Writes lines. A full disk or a closed pipe must not fail a reconcile."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def msg(self, line: str) -> None:
        with suppress(OSError, ValueError):  # ValueError: the stream is closed
            self._stream.write(f"{line}\n")
            self._stream.flush()

    debug = info = warning = error = critical = msg


def _timed(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    event["timestamp"] = rfc3339_micro(datetime.now(UTC))
    return event


def redact(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Remove secrets. This is a last line of defence: none should get here."""
    return {key: _redacted(key, value) for key, value in event.items()}


def _redacted(key: object, value: Any) -> Any:
    if isinstance(key, str) and _is_secret(key):
        return _HIDDEN
    match value:
        case str():
            return _without_secrets(value)
        case bool() | int() | float() | None:
            return value
        case dict():
            return {name: _redacted(name, inner) for name, inner in value.items()}
        case list() | tuple():
            return [_redacted(None, inner) for inner in value]
        case _:
            return _without_secrets(str(value))


def _without_secrets(text: str) -> str:
    folded = text.lower()  # most texts have no secret, and this check is ten times cheaper
    return _SECRET_TEXT.sub(_HIDDEN, text) if any(mark in folded for mark in _SECRET_MARKS) else text


@lru_cache(maxsize=1024)
def _is_secret(key: str) -> bool:
    return _SECRET_KEY.search(key) is not None


def _rendering(*, as_json: bool, colors: bool) -> tuple[Processor, ...]:
    if as_json:
        return (_facts_last, structlog.processors.JSONRenderer(serializer=_json))
    return (structlog.dev.ConsoleRenderer(colors=colors),)


def _facts_last(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    return {"timestamp": event.pop("timestamp"), "level": event.pop("level"), "event": event.pop("event"), **event}


def _json(event: EventDict, **_: Any) -> str:
    return msgspec.json.encode(event, enc_hook=str).decode()


def _number(level: Level) -> int:
    return logging.getLevelNamesMapping()[level.upper()]
