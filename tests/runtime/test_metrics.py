from random import Random

import pytest
from prometheus_client import Counter
from prometheus_client.parser import text_string_to_metric_families

from tests.runtime.clocks import ManualClock
from virt_steward.runtime.metrics import Metrics
from virt_steward.runtime.workqueue import QueueBackoff, WorkQueue


class TwoWorkers:
    name = "advisor"
    concurrency = 2
    active = 1


def value(metrics: Metrics, sample: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(sample, labels)


async def test_metrics_of_queue() -> None:
    clock, metrics = ManualClock(), Metrics()
    queue: WorkQueue[str] = WorkQueue("advisor", clock, Random(1), metrics, QueueBackoff())
    for key in ("a", "b", "a"):
        queue.add(key)
    await clock.advance(2)
    await queue.get()
    await queue.get()
    await clock.advance(3)
    queue.add("b")
    queue.add("b")
    queue.done("a")
    queue.retry("a")
    queue.add("c")

    assert value(metrics, "workqueue_adds_total", name="advisor") == 4
    assert value(metrics, "workqueue_retries_total", name="advisor") == 1
    assert value(metrics, "workqueue_queue_duration_seconds_sum", name="advisor") == 4
    assert value(metrics, "workqueue_work_duration_seconds_sum", name="advisor") == 3
    assert value(metrics, "workqueue_longest_running_processor_seconds", name="advisor") == 3
    assert value(metrics, "workqueue_unfinished_work_seconds", name="advisor") == 3
    queue.shut_down()


async def test_metrics_read_queue_depth_at_scrape() -> None:
    metrics = Metrics()
    queue: WorkQueue[str] = WorkQueue("advisor", ManualClock(), Random(1), metrics)
    assert value(metrics, "workqueue_depth", name="advisor") == 0
    queue.add("a")
    assert value(metrics, "workqueue_depth", name="advisor") == 1


@pytest.mark.parametrize(
    ("result", "errors", "terminal_errors"),
    [
        pytest.param("success", 0, 0, id="a-success-is-no-error"),
        pytest.param("requeue_after", 0, 0, id="a-wait-is-no-error"),
        pytest.param("error", 1, 0, id="a-retryable-error-is-one"),
        pytest.param("terminal", 1, 1, id="a-terminal-error-is-both"),
    ],
)
def test_metrics_count_reconciles_by_result(result: str, errors: int, terminal_errors: int) -> None:
    metrics = Metrics()
    metrics.controller(TwoWorkers()).reconciled(result, 0.25)  # type: ignore[arg-type]
    assert value(metrics, "controller_runtime_reconcile_total", controller="advisor", result=result) == 1
    assert value(metrics, "controller_runtime_reconcile_errors_total", controller="advisor") == errors
    assert value(metrics, "controller_runtime_terminal_reconcile_errors_total", controller="advisor") == terminal_errors
    assert value(metrics, "controller_runtime_reconcile_time_seconds_sum", controller="advisor") == 0.25


def test_metrics_count_requests_by_verb_and_code() -> None:
    metrics = Metrics()
    metrics.request_observed("apply", "200", 0.5)
    metrics.request_observed("apply", "409", 0.25)
    assert value(metrics, "rest_client_requests_total", verb="apply", code="409") == 1
    assert value(metrics, "rest_client_request_duration_seconds_sum", verb="apply") == 0.75


def test_metrics_show_leadership() -> None:
    metrics = Metrics()
    metrics.leads("virt-steward", leading=True)
    assert value(metrics, "leader_election_master_status", name="virt-steward") == 1
    metrics.leads("virt-steward", leading=False)
    assert value(metrics, "leader_election_master_status", name="virt-steward") == 0


def test_exposition_is_valid_and_complete() -> None:
    metrics = Metrics()
    Counter("plans_approved", "Plans approved.", registry=metrics.registry).inc()
    families = {family.name for family in text_string_to_metric_families(metrics.exposition().decode())}
    assert {"plans_approved", "process_resident_memory_bytes", "process_cpu_seconds"} <= families
    assert not [name for name in families if name.endswith("_created")]
