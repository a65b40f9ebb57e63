"""Essential tasks: one that ends with an error is logged and fails liveness; one that is cancelled is not."""

import asyncio

from structlog.testing import capture_logs

from virt_steward.runtime.supervision import essential, failure_of


async def crash() -> None:
    await asyncio.sleep(0)
    raise ZeroDivisionError("no such thing")


async def test_failure_names_task_that_ended_with_error() -> None:
    with capture_logs() as logs:
        tasks = [essential(crash(), "cache"), essential(asyncio.Event().wait(), "other")]  # type: ignore[arg-type]
        assert failure_of(tasks) is None
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        assert failure_of(tasks) == "cache ended: ZeroDivisionError('no such thing')"
        tasks[1].cancel()
        await asyncio.wait(tasks)
    assert failure_of(tasks[1:]) is None
    assert [(line["event"], line["task"]) for line in logs] == [("task ended, restart the process", "cache")]
