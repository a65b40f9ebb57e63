"""Status conditions of simulated objects: find one, and set one. Its transition time moves only with its status."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Status = Literal["True", "False", "Unknown"]


@dataclass(frozen=True, slots=True)
class RawCondition:
    """A condition as simulated controllers write it. Those of our own kinds are `apis.meta.Condition`."""

    type: str
    status: Status
    reason: str
    message: str = ""
    last_transition_time: str = ""
    observed_generation: int | None = None

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> RawCondition:
        return cls(
            type=data["type"],
            status=data.get("status") or "Unknown",
            reason=data.get("reason") or "",
            message=data.get("message") or "",
            last_transition_time=data.get("lastTransitionTime") or "",
            observed_generation=data.get("observedGeneration"),
        )

    def as_data(self) -> dict[str, Any]:
        data = {
            "type": self.type,
            "status": self.status,
            "reason": self.reason,
            "message": self.message,
            "lastTransitionTime": self.last_transition_time,
        }
        return data if self.observed_generation is None else {**data, "observedGeneration": self.observed_generation}


def find(conditions: Sequence[Mapping[str, Any]], type_: str) -> RawCondition | None:
    return next((RawCondition.read(data) for data in conditions if data.get("type") == type_), None)


def is_true(conditions: Sequence[Mapping[str, Any]], type_: str) -> bool:
    """Tell whether the condition holds; one that is missing or unknown does not."""
    found = find(conditions, type_)
    return found is not None and found.status == "True"


def set_condition(conditions: Sequence[Mapping[str, Any]], new: RawCondition, now: str) -> list[Mapping[str, Any]]:
    """Return the conditions with the new one in its old place, or last; `now` is RFC 3339 in seconds."""
    old = find(conditions, new.type)
    since = old.last_transition_time if old and old.status == new.status else ""
    data = replace(new, last_transition_time=since or now).as_data()
    if old is None:
        return [*conditions, data]
    return [data if other.get("type") == new.type else other for other in conditions]
