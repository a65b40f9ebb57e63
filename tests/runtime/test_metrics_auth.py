"""Reviews of tokens: remembered, limited, and refused where nobody can review."""

import asyncio
from collections import Counter
from typing import Any

import pytest

from tests.runtime.clocks import ManualClock
from virt_steward.kube.errors import ServerUnreachable
from virt_steward.runtime.metrics_auth import (
    ACCEPTED_FOR,
    MOST_REVIEWS,
    MOST_TOKENS,
    NEW_TOKENS,
    REFUSED_FOR,
    ClientNames,
    ScrapeRequest,
    TokenReviews,
)


class Reviewer:
    """An API server that knows one user, who may read metrics."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.valid = {"good"}
        self.at_once = self.most_at_once = 0
        self.is_down = False
        self.answers: dict[str, Any] = {}

    async def create(self, review: dict[str, Any]) -> dict[str, Any]:
        self.asked[review["kind"]] += 1
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(0)
        self.at_once -= 1
        if self.is_down:
            raise ServerUnreachable("connection refused")
        if review["kind"] in self.answers:
            return {"status": self.answers[review["kind"]]}
        if review["kind"] == "TokenReview":
            return {"status": {"authenticated": review["spec"]["token"] in self.valid, "user": {"username": "ann"}}}
        assert review["spec"]["nonResourceAttributes"] == {"path": "/metrics", "verb": "get"}
        return {"status": {"allowed": True}}


class Gate:
    def __init__(self) -> None:
        self.clock, self.reviewer = ManualClock(), Reviewer()
        self.reviews = TokenReviews(self.reviewer, self.clock)  # type: ignore[arg-type]

    async def status(self, authorization: str) -> int:
        refused = await self.reviews.refusal(ScrapeRequest(authorization, ""))
        return refused.status if refused else 200


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.mark.parametrize(
    "header", ["", "good", "Basic good", "Bearer", "Bearer ", "Bearer " + "x" * 9000], ids=lambda text: text[:12]
)
async def test_token_reviews_ask_nobody_without_token(gate: Gate, header: str) -> None:
    assert await gate.status(header) == 401
    assert not gate.reviewer.asked


async def test_token_reviews_are_remembered_for_a_while(gate: Gate) -> None:
    for _ in range(5):
        assert (await gate.status("Bearer good"), await gate.status("bearer bad")) == (200, 401)
    assert gate.reviewer.asked == {"TokenReview": 2, "SubjectAccessReview": 1}
    await gate.clock.advance(REFUSED_FOR)
    gate.reviewer.valid = {"bad"}
    assert (await gate.status("Bearer good"), await gate.status("Bearer bad")) == (200, 200)
    await gate.clock.advance(ACCEPTED_FOR)
    assert await gate.status("Bearer good") == 401, "the token was revoked"


async def test_flood_of_tokens_asks_little_and_lets_known_token_in(gate: Gate) -> None:
    assert await gate.status("Bearer good") == 200
    await gate.clock.advance(ACCEPTED_FOR)
    answers = Counter(await asyncio.gather(*(gate.status(f"Bearer {number}") for number in range(1000))))
    assert answers == {401: NEW_TOKENS.capacity, 429: 1000 - NEW_TOKENS.capacity}
    assert gate.reviewer.most_at_once <= MOST_REVIEWS
    assert await gate.status("Bearer good") == 200


async def test_flood_over_time_keeps_memory_and_known_token(gate: Gate) -> None:
    assert await gate.status("Bearer good") == 200
    for number in range(2 * MOST_TOKENS):
        await gate.clock.advance(1 / NEW_TOKENS.per_second)
        await gate.status(f"Bearer {number}")
    assert len(gate.reviews._known) == MOST_TOKENS
    gate.reviewer.valid = {"good"}
    before = gate.reviewer.asked["TokenReview"]
    for number in range(50):
        await gate.status(f"Bearer other-{number}")
    assert await gate.status("Bearer good") == 200
    assert gate.reviewer.asked["TokenReview"] <= before + NEW_TOKENS.capacity + 1


async def test_token_is_refused_while_nobody_can_review(gate: Gate) -> None:
    gate.reviewer.is_down = True
    assert await gate.status("Bearer good") == 503
    gate.reviewer.is_down = False
    assert await gate.status("Bearer good") == 200


@pytest.mark.parametrize(
    ("kind", "answer", "status"),
    [
        pytest.param("TokenReview", None, 401, id="no-status"),
        pytest.param("TokenReview", {}, 401, id="empty-status"),
        pytest.param("TokenReview", {"error": "boom", "user": {"username": "ann"}}, 401, id="error"),
        pytest.param("SubjectAccessReview", None, 403, id="no-access-status"),
        pytest.param("SubjectAccessReview", {"allowed": "yes"}, 403, id="not-a-boolean"),
        pytest.param("SubjectAccessReview", {"allowed": False, "denied": True}, 403, id="denied"),
    ],
)
async def test_token_reviews_fail_closed(gate: Gate, kind: str, answer: Any, status: int) -> None:
    gate.reviewer.answers[kind] = answer
    assert await gate.status("Bearer good") == status


@pytest.mark.parametrize(("name", "allowed"), [("prometheus", True), ("other", False), ("", False)])
async def test_client_names_accept_listed_names(name: str, *, allowed: bool) -> None:
    assert (await ClientNames(("prometheus", "")).refusal(ScrapeRequest("", name)) is None) is allowed
