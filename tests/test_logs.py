import contextvars
import io
import json
import logging
import re
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from virt_steward.logs import configure
from virt_steward.runtime import task


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    structlog.reset_defaults()
    root.handlers[:] = handlers
    root.setLevel(level)


def only_line(stream: io.StringIO) -> dict[str, Any]:
    [line] = stream.getvalue().splitlines()
    return dict(json.loads(line))


def crash(message: str) -> None:
    held = "hunter" + str(2)  # in no source line, so only a dump of variables shows it
    raise ValueError(message[: 100 * len(held)])


def approve_a_plan() -> None:
    task.works_on(controller="advisor")
    structlog.get_logger().info("plan approved", plan="default/a")


def test_a_line_is_json_with_time_level_and_event_before_the_facts() -> None:
    stream = io.StringIO()
    configure("json", "info", stream)
    contextvars.copy_context().run(approve_a_plan)
    line = only_line(stream)
    assert list(line)[:3] == ["timestamp", "level", "event"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z", line.pop("timestamp"))
    assert line == {"level": "info", "event": "plan approved", "controller": "advisor", "plan": "default/a"}


def test_records_of_libraries_take_the_same_way() -> None:
    stream = io.StringIO()
    configure("json", "info", stream)
    logging.getLogger("aiohttp.server").warning("connection %s lost", 7)
    line = only_line(stream)
    assert (line["level"], line["event"]) == ("warning", "connection 7 lost")


@pytest.mark.parametrize(
    ("stream", "log_format", "begins"),
    [
        pytest.param(io.StringIO(), "auto", "{", id="json-when-nobody-watches"),
        pytest.param(Terminal(), "auto", "\x1b[", id="coloured-on-a-terminal"),
        pytest.param(Terminal(), "json", "{", id="json-on-a-terminal-if-asked"),
        pytest.param(io.StringIO(), "console", "20", id="for-people-in-a-pipe-if-asked"),
    ],
)
def test_lines_are(stream: io.StringIO, log_format: Any, begins: str) -> None:
    configure(log_format, "info", stream)
    structlog.get_logger().info("started")
    assert "started" in stream.getvalue()
    assert stream.getvalue().startswith(begins)


def test_what_is_below_the_level_is_left_out_wherever_it_comes_from() -> None:
    stream = io.StringIO()
    configure("json", "warning", stream)
    structlog.get_logger().info("ours")
    logging.getLogger("theirs").info("theirs")
    assert stream.getvalue() == ""


@pytest.mark.parametrize(
    "key", ["token", "Authorization", "client_secret", "password", "kubeconfig", "client-key-data"]
)
@pytest.mark.parametrize("log_format", ["json", "console"])
def test_a_value_is_hidden_when_its_key_looks_like_a_secret(key: str, log_format: Any) -> None:
    stream = io.StringIO()
    configure(log_format, "info", stream)
    structlog.get_logger().info("told", **{key: "hunter2"}, user={"name": "admin", key: "hunter2"})
    assert "hunter2" not in stream.getvalue()
    assert "admin" in stream.getvalue()


@pytest.mark.parametrize("log_format", ["json", "console"])
def test_a_bearer_token_is_hidden_wherever_it_stands(log_format: Any) -> None:
    stream = io.StringIO()
    configure(log_format, "info", stream)
    log = structlog.get_logger()
    log.info("sent", headers=["Bearer abc.def"], error=ValueError("eyJhbGciOi.eyJpc3Mi.c2lnbmF0"))
    try:
        crash("Authorization: bearer abc.def was refused")
    except ValueError:
        log.exception("crashed")
    assert "abc.def" not in stream.getvalue()
    assert "eyJpc3Mi" not in stream.getvalue()
    assert "was refused" in stream.getvalue()


@pytest.mark.parametrize("log_format", ["json", "console"])
def test_a_traceback_is_shown_without_the_values_of_variables(log_format: Any) -> None:
    stream = io.StringIO()
    configure(log_format, "info", stream)
    try:
        crash("no such user")
    except ValueError as error:
        structlog.get_logger().error("crashed", exc_info=error)
    assert "ValueError: no such user" in stream.getvalue()
    assert "hunter2" not in stream.getvalue()


def test_a_log_that_cannot_be_written_does_not_stop_who_logs() -> None:
    class Full(io.StringIO):
        def write(self, _: str) -> int:
            raise OSError(28, "No space left on device")

    configure("json", "info", Full())
    structlog.get_logger().info("going on")
