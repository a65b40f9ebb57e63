from hypothesis import given
from hypothesis import strategies as st

from virt_steward.runtime.throttle import BucketEmpty, KeyedBuckets, Rate, TokenBucket, TokenTaken

TEN_A_MINUTE = Rate(capacity=10, per_second=10 / 60)


def test_bucket_gives_capacity_then_retry_in() -> None:
    bucket = TokenBucket(TEN_A_MINUTE, now=0.0)
    assert [bucket.take(0.0) for _ in range(11)] == [TokenTaken()] * 10 + [BucketEmpty(retry_in=6.0)]


def test_bucket_never_exceeds_capacity() -> None:
    bucket = TokenBucket(TEN_A_MINUTE, now=0.0)
    taken = [bucket.take(1_000_000.0) for _ in range(11)]
    assert taken.count(TokenTaken()) == 10


@given(
    rate=st.builds(Rate, capacity=st.integers(1, 20), per_second=st.floats(0.1, 10)),
    waits=st.lists(st.floats(0, 0.2), min_size=30, max_size=50),
)
def test_bucket_gives_token_after_retry_in(rate: Rate, waits: list[float]) -> None:
    now = 5_000_000.0
    bucket = TokenBucket(rate, now)
    for wait in waits:
        now += wait
        answer = bucket.take(now)
        if isinstance(answer, BucketEmpty):
            now += answer.retry_in
            assert bucket.take(now) == TokenTaken()


@given(waits=st.lists(st.floats(0, 60), max_size=100))
def test_bucket_limits_any_pattern(waits: list[float]) -> None:
    now = 0.0
    bucket = TokenBucket(TEN_A_MINUTE, now)
    taken = 0
    for wait in waits:
        now += wait
        taken += bucket.take(now) == TokenTaken()
    assert taken <= 10 + now * TEN_A_MINUTE.per_second + 0.001


def test_keyed_buckets_are_independent() -> None:
    buckets: KeyedBuckets[str] = KeyedBuckets(Rate(capacity=1, per_second=1.0))
    assert buckets.take("a", 0.0) == TokenTaken()
    assert buckets.take("b", 0.0) == TokenTaken()
    assert buckets.take("a", 0.5) == BucketEmpty(retry_in=0.5)


def test_keyed_buckets_drop_full_bucket() -> None:
    buckets: KeyedBuckets[int] = KeyedBuckets(Rate(capacity=2, per_second=1.0))
    for key in range(1000):
        buckets.take(key, 0.0)
    buckets.take(0, 1.5)
    assert len(buckets) == 1000
    buckets.take(-1, 2.0)
    assert len(buckets) == 2


def test_keyed_buckets_keep_used_bucket() -> None:
    buckets: KeyedBuckets[str] = KeyedBuckets(Rate(capacity=2, per_second=0.1))
    answers = [buckets.take("a", float(second)) for second in range(60)]
    assert answers.count(TokenTaken()) <= 2 + 6
