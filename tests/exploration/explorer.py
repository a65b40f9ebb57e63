"""Visits every state that a small model of the environment and a controller's `decide` can reach.

A state is a hashable value. From each state the environment may move (`moves`: somebody edits a spec, a node becomes
ready), and the controller may take its next step (`step`). Both are tried in every state, in every order, which is more
than any test by examples does: a bug that needs five events in an unlucky order is found if the model can express it.

Two things are checked. `check` looks at each step of the controller. And the controller comes to rest: from every
state, if the environment stops, its own steps end in a state in which it has nothing to do. A step that undoes the one
before would be found as a circle.
"""

from collections import deque
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

S = TypeVar("S", bound=Hashable)


@dataclass(frozen=True)
class Model(Generic[S]):
    """An environment, and a controller in it."""

    start: S
    moves: Callable[[S], Iterable[tuple[str, S]]]
    """What the environment may do, each with a name for the path to a failure."""
    step: Callable[[S], S]
    """The state after the controller's next step; the same state if it has nothing to do."""
    check: Callable[[S, S], None]
    """Asserts what must hold of a step of the controller: the state before and after it."""


@dataclass
class Exploration(Generic[S]):
    """All states that were reached."""

    parents: dict[S, tuple[S, str] | None] = field(default_factory=dict)
    steps: int = 0
    longest_rest: int = 0
    """How many steps of the controller it takes at most until it rests."""
    is_complete: bool = False
    """Whether every reachable state was visited, within the bound."""

    @property
    def states(self) -> int:
        return len(self.parents)

    def path(self, state: S) -> str:
        """How the state was reached."""
        names: list[str] = []
        while (parent := self.parents[state]) is not None:
            state, name = parent
            names.append(name)
        return " → ".join(reversed(names)) or "the start"


def explore(model: Model[S], *, most_states: int) -> Exploration[S]:
    """Visit all reachable states, the nearest first, until there are no more or `most_states` are known."""
    found: Exploration[S] = Exploration({model.start: None})
    rests: dict[S, int] = {}
    waiting = deque([model.start])
    while waiting:
        state = waiting.popleft()
        after = _checked_step(model, found, state)
        found.steps += after != state
        found.longest_rest = max(found.longest_rest, _steps_to_rest(model, found, state, rests))
        for name, reached in (("the controller's step", after), *model.moves(state)):
            if reached not in found.parents and found.states < most_states:
                found.parents[reached] = (state, name)
                waiting.append(reached)
    found.is_complete = found.states < most_states
    return found


def _checked_step(model: Model[S], found: Exploration[S], state: S) -> S:
    try:
        after = model.step(state)
        model.check(state, after)
    except Exception as error:
        raise AssertionError(f"{error!r} after {found.path(state)}, in {state}") from error
    return after


def _steps_to_rest(model: Model[S], found: Exploration[S], state: S, rests: dict[S, int]) -> int:
    """How many steps the controller takes until it rests. `rests` remembers the answers of earlier calls."""
    passed: list[S] = []
    one = state
    while one not in rests:
        assert one not in passed, f"never rests: a circle of {len(passed)} steps after {found.path(state)}, in {state}"
        after = model.step(one)
        if after == one:
            rests[one] = 0
            break
        passed.append(one)
        one = after
    rests.update((earlier, distance) for distance, earlier in enumerate(reversed(passed), start=rests[one] + 1))
    return rests[state]
