"""Prometheus metrics of the process, with the names of controller-runtime and client-go."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Protocol

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Result = Literal["success", "requeue_after", "error", "terminal"]

_SECONDS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0)


class MeasuredQueue(Protocol):
    """What metrics read of a queue at each scrape."""

    name: str

    def __len__(self) -> int: ...

    @property
    def running(self) -> Mapping[Any, float]: ...


class MeasuredController(Protocol):
    """What metrics read of a controller's workers at each scrape."""

    name: str
    concurrency: int

    @property
    def active(self) -> int: ...


class Metrics:
    """The metrics of one process. A controller adds its own to `registry`."""

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # they double the output, and nobody uses them
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._queues = _QueueFamilies(self.registry)
        self._controllers = _ControllerFamilies(self.registry)
        self._leading = Gauge(
            "leader_election_master_status", "1 while this process leads.", ["name"], registry=self.registry
        )
        self._standing_by = Gauge(
            "virt_steward_standing_by",
            "1 while another operator does the work of this controller.",
            ["controller"],
            registry=self.registry,
        )
        self._events_dropped = Gauge(
            "virt_steward_events_dropped",
            "Events dropped by the rate limit or a full queue.",
            ["controller"],
            registry=self.registry,
        )
        self._requests = Counter(
            "rest_client_requests", "Requests to API servers.", ["verb", "code"], registry=self.registry
        )
        self._loop_blocked = Histogram(
            "virt_steward_event_loop_blocked_seconds",
            "Seconds for which one callback or task step held the event loop, if longer than 0.05.",
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._request_series: dict[tuple[str, str], tuple[Counter, Histogram]] = {}
        self._request_seconds = Histogram(
            "rest_client_request_duration_seconds",
            "Seconds until an API server answered.",
            ["verb"],
            buckets=_SECONDS,
            registry=self.registry,
        )

    def events(self, controller: str, dropped: Callable[[], float]) -> None:
        """Export how many of a controller's events were dropped."""
        self._events_dropped.labels(controller).set_function(dropped)

    def queue(self, queue: MeasuredQueue) -> QueueMetrics:
        """The metrics of a queue; its name is the label."""
        return QueueMetrics(self._queues, queue)

    def controller(self, controller: MeasuredController) -> ControllerMetrics:
        """The metrics of a controller's workers; its name is the label."""
        return ControllerMetrics(self._controllers, controller)

    def leads(self, name: str, *, leading: bool) -> None:
        """Export whether this process is the leader of that controller."""
        self._leading.labels(name).set(leading)

    def stands_by(self, name: str, *, standing_by: bool) -> None:
        """Export whether that controller stands by while another implementation of it runs."""
        self._standing_by.labels(name).set(standing_by)

    def request_observed(self, verb: str, code: str, seconds: float) -> None:
        """Count one answered or failed request to an API server."""
        series = self._request_series.get((verb, code))
        if series is None:  # cached, since this is the most frequent call
            series = (self._requests.labels(verb, code), self._request_seconds.labels(verb))
            self._request_series[verb, code] = series
        series[0].inc()
        series[1].observe(seconds)

    def loop_blocked(self, seconds: float) -> None:
        """Record that something held the event loop."""
        self._loop_blocked.observe(seconds)

    def exposition(self) -> bytes:
        """All metrics, in the Prometheus text format 0.0.4."""
        return generate_latest(self.registry)


class QueueMetrics:
    """The metrics of one queue."""

    def __init__(self, families: _QueueFamilies, queue: MeasuredQueue) -> None:
        name = queue.name
        self._adds = families.adds.labels(name)
        self._retries = families.retries.labels(name)
        self._waits = families.waits.labels(name)
        self._work = families.work.labels(name)
        families.depth.labels(name).set_function(lambda: len(queue))
        families.unfinished.labels(name).set_function(lambda: sum(queue.running.values()))
        families.longest.labels(name).set_function(lambda: max(queue.running.values(), default=0.0))

    def added(self) -> None:
        self._adds.inc()

    def retried(self) -> None:
        self._retries.inc()

    def taken(self, waited: float) -> None:
        self._waits.observe(waited)

    def worked(self, seconds: float) -> None:
        self._work.observe(seconds)


class ControllerMetrics:
    """The metrics of one controller's workers."""

    def __init__(self, families: _ControllerFamilies, controller: MeasuredController) -> None:
        name = controller.name
        self._results = {
            "success": families.results.labels(name, "success"),
            "requeue_after": families.results.labels(name, "requeue_after"),
            "error": families.results.labels(name, "error"),
            "terminal": families.results.labels(name, "terminal"),
        }
        self._errors = families.errors.labels(name)
        self._terminal_errors = families.terminal_errors.labels(name)
        self._seconds = families.seconds.labels(name)
        families.active.labels(name).set_function(lambda: controller.active)
        families.concurrency.labels(name).set(controller.concurrency)

    def reconciled(self, result: Result, seconds: float) -> None:
        self._results[result].inc()
        self._seconds.observe(seconds)
        if result in ("error", "terminal"):
            self._errors.inc()
        if result == "terminal":
            self._terminal_errors.inc()


class _QueueFamilies:
    def __init__(self, registry: CollectorRegistry) -> None:
        counter = partial(Counter, labelnames=["name"], registry=registry)
        gauge = partial(Gauge, labelnames=["name"], registry=registry)
        histogram = partial(Histogram, labelnames=["name"], buckets=_SECONDS, registry=registry)
        self.depth = gauge("workqueue_depth", "Keys that are ready for a worker.")
        self.adds = counter("workqueue_adds", "Keys added, without repeats of a queued key.")
        self.retries = counter("workqueue_retries", "Keys retried after a failure.")
        self.waits = histogram("workqueue_queue_duration_seconds", "Seconds that a key waited for a worker.")
        self.work = histogram("workqueue_work_duration_seconds", "Seconds that a worker spent on a key.")
        self.unfinished = gauge("workqueue_unfinished_work_seconds", "Seconds spent on all keys in progress.")
        self.longest = gauge(
            "workqueue_longest_running_processor_seconds", "Seconds spent on the slowest key in progress."
        )


class _ControllerFamilies:
    def __init__(self, registry: CollectorRegistry) -> None:
        counter = partial(Counter, namespace="controller_runtime", registry=registry)
        gauge = partial(Gauge, namespace="controller_runtime", labelnames=["controller"], registry=registry)
        self.results = counter("reconcile", "Reconciles by result.", ["controller", "result"])
        self.errors = counter("reconcile_errors", "Reconciles that failed.", ["controller"])
        self.terminal_errors = counter(
            "terminal_reconcile_errors",
            "Reconciles that failed and are not retried before the next event.",
            ["controller"],
        )
        self.seconds = Histogram(
            "controller_runtime_reconcile_time_seconds",
            "Seconds that a reconcile took.",
            ["controller"],
            buckets=_SECONDS,
            registry=registry,
        )
        self.active = gauge("active_workers", "Workers in a reconcile.")
        self.concurrency = gauge("max_concurrent_reconciles", "Workers of the controller.")
