"""When a change that reboots nodes may be written, as annotations say: on the object, or on the HyperConverged."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, TypeVar

from virt_steward.controllers.autopilot.annotation_keys import (
    BYPASS,
    OVERRIDE_FREEZE_BY,
    OVERRIDE_FREEZE_COMMENT,
    ROLLOUT,
    ROLLOUT_DEADLINE,
    ROLLOUT_DEADLINE_ACTION,
    ROLLOUT_GATES,
    ROLLOUT_WINDOW,
    TAKEOVER,
)
from virt_steward.objects import gosyntax
from virt_steward.objects.durations import BadDuration, parse_duration
from virt_steward.objects.windows import BadWindow, Window
from virt_steward.platform.machineconfigs import CONTAINER_RUNTIME_CONFIG, KUBELET_CONFIG, MACHINE_CONFIG

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import timedelta

E = TypeVar("E", bound=Enum)

REBOOTING = frozenset((MACHINE_CONFIG, KUBELET_CONFIG, CONTAINER_RUNTIME_CONFIG))
"""Kinds whose changes reboot nodes."""
WAITS = "changes wait until they are released"
_CRON_FIELDS = 5
_LONGEST_NAME, _LONGEST_COMMENT = 253, 300
_EXAMPLE = "0 22 * * FRI 4h Europe/Oslo"


class RolloutMode(Enum):
    """When changes are written."""

    IMMEDIATE = "immediate"
    COALESCE = "coalesce"
    """Creation at once; all else when the nodes of a pool reboot anyway."""
    WINDOW = "window"
    """Within a recurring window."""
    APPROVE = "approve"
    """When a person has released it."""


class Takeover(Enum):
    """What becomes of changes to a cluster that another instance of the autopilot has managed."""

    REVIEW = "review"
    """Each waits until a person releases it."""
    ACCEPT = "accept"
    """Those that reboot no node are written at once."""


class DeadlineAction(Enum):
    """What happens to a change that is still staged at its deadline."""

    WARN = "warn"
    RELEASE = "release"


@dataclass(frozen=True, slots=True)
class RolloutPolicy:
    """What holds for one object."""

    mode: RolloutMode = RolloutMode.COALESCE
    window: Window | None = None
    """Of the mode WINDOW; None: there is none that can be read, so it never opens."""
    deadline: timedelta | None = None
    """How long a change stays staged before the action applies."""
    action: DeadlineAction = DeadlineAction.WARN
    takeover: Takeover = Takeover.REVIEW
    is_bypassed: bool = False
    """The object itself says that nothing of it is staged."""
    gates: tuple[str, ...] = ()
    """The gates that must be open before a change is written."""
    problems: tuple[str, ...] = ()
    """Annotations that cannot be followed; each of them leads to fewer writes, not more."""


def parse_policy(hco: Mapping[str, str], live: Mapping[str, str]) -> RolloutPolicy:
    """Read the annotations; those of the live object win, one by one."""
    given = {**hco, **live}
    problems: list[str] = []
    mode = _parse_choice(given, ROLLOUT, RolloutMode.COALESCE, WAITS, problems) or RolloutMode.APPROVE
    action = _parse_choice(given, ROLLOUT_DEADLINE_ACTION, DeadlineAction.WARN, "the deadline only warns", problems)
    takeover = _parse_choice(given, TAKEOVER, Takeover.REVIEW, WAITS, problems)
    return RolloutPolicy(
        mode=mode,
        window=_parse_window(given.get(ROLLOUT_WINDOW), problems) if mode is RolloutMode.WINDOW else None,
        deadline=_parse_deadline(given.get(ROLLOUT_DEADLINE), problems),
        action=action or DeadlineAction.WARN,
        takeover=takeover or Takeover.REVIEW,
        is_bypassed=live.get(BYPASS) in gosyntax.TRUE,
        gates=tuple(_parts(given.get(ROLLOUT_GATES, ""))),
        problems=tuple(problems),
    )


def _parse_window(text: str | None, problems: list[str]) -> Window | None:
    if text is None:
        problems.append(f"{ROLLOUT_WINDOW} is missing, such as {_EXAMPLE!r}: {WAITS}")
        return None
    parts = text.split()
    try:
        schedule, (duration, *zone) = " ".join(parts[:_CRON_FIELDS]), parts[_CRON_FIELDS:]
        return Window.parse(schedule, duration, *zone)
    except BadWindow as bad:
        reason = str(bad)
    except (ValueError, TypeError):  # too few parts, or too many
        reason = "write a schedule of five fields, a duration and a time zone"
    problems.append(f"{ROLLOUT_WINDOW} is {text[:80]!r}, not a window such as {_EXAMPLE!r} ({reason}): {WAITS}")
    return None


def _parse_deadline(text: str | None, problems: list[str]) -> timedelta | None:
    if text is None:
        return None
    try:
        return parse_duration(text.strip())
    except BadDuration as bad:
        problems.append(f"{ROLLOUT_DEADLINE}: {bad}; there is no deadline until it is corrected")
        return None


def _parse_choice(given: Mapping[str, str], key: str, default: E, invalid: str, problems: list[str]) -> E | None:
    """Read one of several values; None if it is another, which has the consequence `invalid`."""
    if (text := given.get(key)) is None:
        return default
    if found := next((one for one in type(default) if one.value == text.strip()), None):
        return found
    known = ", ".join(one.value for one in type(default))
    problems.append(f"{key} is {text[:40]!r}, not one of {known}: {invalid}")
    return None


def parse_releases(text: str | None) -> frozenset[str]:
    """Read which staged changes people have released: `asset@id`, separated by commas."""
    return frozenset(_parts(text or ""))


def override_note(annotations: Mapping[str, str]) -> str:
    """Say who has overridden a freeze, and why, as the HyperConverged records it."""
    by = annotations.get(OVERRIDE_FREEZE_BY, "")[:_LONGEST_NAME] or "a person"
    return f"{by} overrides the freeze: {annotations.get(OVERRIDE_FREEZE_COMMENT, '')[:_LONGEST_COMMENT]}"


def _parts(text: str) -> Iterator[str]:
    return (part for raw in text.split(",") if (part := raw.strip()))
