"""The plugin that fails tests in which our code held the event loop."""

import asyncio
import time
from pathlib import Path

import pytest

from tests.lag_limits import MAX_CPU, blocked_processes, monitored_test


async def compute(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


@pytest.mark.parametrize(
    ("seconds", "wait", "is_blocked"),
    [
        pytest.param(2 * MAX_CPU, 0.0, True, id="computes"),
        pytest.param(MAX_CPU / 10, 0.0, False, id="computes-little"),
        pytest.param(0.0, 2 * MAX_CPU, False, id="waits-for-the-machine"),
    ],
)
def test_monitored_test_fails_if_another_task_computes(seconds: float, wait: float, *, is_blocked: bool) -> None:
    async def test() -> None:
        async def work() -> None:
            time.sleep(wait)  # noqa: ASYNC251 - as if other processes had the CPU
            await compute(seconds)

        await asyncio.create_task(work(), name="worker")
        await asyncio.sleep(0)

    try:
        asyncio.run(monitored_test(test)())  # type: ignore[arg-type]
    except pytest.fail.Exception as failed:
        assert is_blocked
        assert "task worker, at test_lag_limits.py:" in str(failed)  # noqa: PT017 - both outcomes are cases here
    else:
        assert not is_blocked


def test_monitored_test_may_compute_itself() -> None:
    async def test() -> None:
        await compute(2 * MAX_CPU)

    asyncio.run(monitored_test(test)())  # type: ignore[arg-type]


def test_blocked_processes_are_found_in_their_logs(tmp_path: Path) -> None:
    line = '{{"event":"event loop blocked","seconds":0.9,"cpu":{cpu},"task":"worker","at":"patch.py:1 in apply"}}\n'
    one, two = tmp_path / "one.log", tmp_path / "two.log"
    one.write_text('{"event":"started"}\n' + line.format(cpu=0.1))
    assert blocked_processes(tmp_path) == []
    two.write_text(line.format(cpu=0.8))
    assert blocked_processes(tmp_path) == ["0.800 s of CPU in 0.900 s, task worker, at patch.py:1 in apply"]
    two.unlink()  # or this test would fail by it
