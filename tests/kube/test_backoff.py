import random

import pytest

from virt_steward.kube.backoff import RetryBackoff
from virt_steward.kube.errors import (
    Expired,
    Forbidden,
    KubeError,
    ServerError,
    ServerUnreachable,
    TimedOut,
    TooManyRequests,
)

GONE = Expired(410, "Expired", "too old")
DENIED = Forbidden(403, "Forbidden", "no")


def delays(backoff: RetryBackoff, error: KubeError, times: int = 12) -> list[float]:
    return [backoff.after(error) for _ in range(times)]


@pytest.mark.parametrize(
    ("error", "first", "longest"),
    [
        pytest.param(GONE, 0.0, 2.0, id="an expired past, at once"),
        pytest.param(TimedOut("silent"), 0.0, 2.0, id="a silent stream, at once"),
        pytest.param(ServerUnreachable("refused"), 0.1, 2.0, id="a refused connection, soon"),
        pytest.param(ServerError("starting", 60.0), 0.5, 30.0, id="a failing server, at our own pace"),
        pytest.param(DENIED, 2.0, 60.0, id="a missing right, rarely"),
    ],
)
def test_backoff_delays_by_cause(error: KubeError, first: float, longest: float) -> None:
    found = delays(RetryBackoff(random.Random(3)), error)
    assert first / 2 <= found[0] <= first
    assert longest / 2 <= found[-1] <= longest
    assert max(found) <= longest


def test_backoff_honours_retry_after() -> None:
    assert RetryBackoff(random.Random(3)).after(TooManyRequests("busy", 42.0)) == 42.0


def test_backoff_counts_each_cause_separately() -> None:
    backoff = RetryBackoff(random.Random(3))
    delays(backoff, ServerUnreachable("refused"), times=20)
    assert backoff.after(ServerError("starting")) <= 0.5


def test_backoff_resets_on_success() -> None:
    backoff = RetryBackoff(random.Random(3))
    delays(backoff, ServerUnreachable("refused"))
    backoff.succeeded()
    assert backoff.after(ServerUnreachable("refused")) <= 0.1


def test_backoff_has_jitter() -> None:
    error = ServerUnreachable("refused")
    assert delays(RetryBackoff(random.Random(1)), error) != delays(RetryBackoff(random.Random(2)), error)
