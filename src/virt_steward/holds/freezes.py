"""Freezes: times in which nothing begins. Pure.

A freeze is a window that denies. It comes from the object itself (`spec.freeze`, `policy.freezes`), or from the
ConfigMap that freezes the whole installation. One that cannot be read, or that is invalid, is in force: nobody can tell
when it was meant to end.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec

from virt_steward.objects.meta import Meta
from virt_steward.objects.quoting import quoted
from virt_steward.objects.wallclock import rfc3339
from virt_steward.objects.windows import BadWindow, Open, Window, state

if TYPE_CHECKING:
    from collections.abc import Iterable

    from virt_steward.apis.meta import WindowSpec

CONFIG_MAP_NAME = "virt-steward-freeze"
"""In the namespace of the controllers."""
FROZEN = "Frozen"
"""The reason, in conditions and in lists of what is pending."""
PLACEMENT = "placement"
BY_DEFAULT = ("advisor", "approver", "autopilot")
"""The controllers that a freeze holds unless it names others."""
CONTROLLERS = (*BY_DEFAULT, PLACEMENT)


@dataclass(frozen=True, slots=True)
class NotFrozen:
    """Nothing is frozen."""

    until: datetime | None = None
    """When a freeze begins, if that is known."""


@dataclass(frozen=True, slots=True)
class Frozen:
    """Nothing begins."""

    source: str
    """Where the freeze is defined, such as `spec.freeze`."""
    reason: str = ""
    """Why, in the words of who defined it."""
    until: datetime | None = None
    """When it ends; None: when somebody removes or corrects it."""
    is_total: bool = False
    """Whether corrections of drift stop too."""
    problem: str = ""
    """Why it cannot be followed; empty if it can."""

    @property
    def message(self) -> str:
        """What is frozen until when, why, and what to do."""
        if self.problem:
            return f"frozen, since {self.source} {self.problem}; nothing begins until it is corrected or removed"
        why = f" ({self.reason})" if self.reason else ""
        end = f"until {rfc3339(self.until)}" if self.until else "until it is removed"
        return f"frozen by {self.source} {end}{why}"


FreezeState = Frozen | NotFrozen
NOT_FROZEN = NotFrozen()


def combined(states: Iterable[FreezeState]) -> FreezeState:
    """The state under several freezes: the one that lasts longest is named, one without an end before all others."""
    found = tuple(states)
    frozen = [one for one in found if isinstance(one, Frozen)]
    if not frozen:
        return NotFrozen(min((one.until for one in found if one.until), default=None))
    last = max(
        frozen, key=lambda one: (bool(one.problem), one.until is None, one.until.timestamp() if one.until else 0)
    )
    return replace(last, is_total=True) if any(one.is_total for one in frozen) else last


def state_of_spec(freeze: WindowSpec | None, source: str, now: datetime) -> FreezeState:
    """The state of a freeze that an object defines; `source` is its field."""
    if freeze is None:
        return NOT_FROZEN
    try:
        window = Window.parse(freeze.schedule, freeze.duration, freeze.time_zone)
    except BadWindow as bad:
        return Frozen(source, problem=f"is invalid ({bad})")
    return _recurring(window, source, now)


def _recurring(window: Window, source: str, now: datetime, reason: str = "", *, is_total: bool = False) -> FreezeState:
    found = state([window], now)
    if isinstance(found, Open):
        return Frozen(source, reason, found.until, is_total)
    return NotFrozen(found.until)


Text = Annotated[str, msgspec.Meta(max_length=128)]


class FreezeSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The data of the ConfigMap. Without a time, the freeze lasts until the ConfigMap is deleted."""

    schedule: Text = ""
    """When it begins, as five cron fields; it ends after `duration`."""
    duration: Text = ""
    time_zone: Text = "UTC"
    begin: Text = msgspec.field(default="", name="from")
    """When it begins, as RFC 3339; empty: it has begun."""
    end: Text = msgspec.field(default="", name="to")
    """When it ends, as RFC 3339; empty: when the ConfigMap is deleted."""
    controllers: Text = ""
    """Names with commas between them; empty: all but the placement."""
    reason: Annotated[str, msgspec.Meta(max_length=256)] = ""
    scope: Literal["changes", "all"] = "changes"
    """Whether the autopilot still corrects drift of what does not reboot nodes, or nothing at all."""


class FreezeRecord(msgspec.Struct, frozen=True, dict=True):
    """The ConfigMap that freezes the installation, as a watch delivers it."""

    metadata: Meta
    data: FreezeSettings = FreezeSettings()

    @cached_property
    def freeze(self) -> InstallationFreeze:
        """Parsed once, since each object asks for it."""
        return parse_freeze(self.data, source_of(self.metadata.namespace))


def source_of(namespace: str) -> str:
    return f"ConfigMap {namespace}/{CONFIG_MAP_NAME}"


@dataclass(frozen=True, slots=True)
class InstallationFreeze:
    """The freeze of the whole installation."""

    source: str
    controllers: frozenset[str]
    reason: str = ""
    is_total: bool = False
    window: Window | None = None
    """None: it lasts from `begin` to `end`."""
    begin: datetime | None = None
    end: datetime | None = None
    problem: str = ""
    """Why it cannot be followed; empty if it can."""

    def state(self, controller: str, now: datetime) -> FreezeState:
        """Whether this controller may begin anything now."""
        if controller not in self.controllers:
            return NOT_FROZEN
        if self.problem:
            return Frozen(self.source, self.reason, is_total=self.is_total, problem=self.problem)
        if self.window:
            return _recurring(self.window, self.source, now, self.reason, is_total=self.is_total)
        if self.begin and now < self.begin:
            return NotFrozen(self.begin)
        if self.end and now >= self.end:
            return NOT_FROZEN
        return Frozen(self.source, self.reason, self.end, self.is_total)


def parse_freeze(settings: FreezeSettings, source: str) -> InstallationFreeze:
    """Read the settings. With any mistake in them the freeze is in force, and says what to correct."""
    names = frozenset(name.strip() for name in settings.controllers.split(",")) if settings.controllers else None
    reason, is_total = " ".join(settings.reason.split()), settings.scope == "all"
    freeze = InstallationFreeze(source, names or frozenset(BY_DEFAULT), reason, is_total)
    try:
        return _with_times(freeze, settings)
    except BadWindow as bad:
        return replace(freeze, controllers=freeze.controllers | {*BY_DEFAULT}, problem=f"is invalid ({bad})")


def _with_times(freeze: InstallationFreeze, settings: FreezeSettings) -> InstallationFreeze:
    """Set when it is in force; raises BadWindow."""
    if unknown := sorted(freeze.controllers - {*CONTROLLERS}):
        raise BadWindow(f"controllers: {quoted(unknown[0])} is none of {', '.join(CONTROLLERS)}")
    if settings.schedule or settings.duration:
        if settings.begin or settings.end:
            raise BadWindow("it has both schedule and from or to: write schedule and duration, or from and to")
        if not settings.schedule or not settings.duration:
            raise BadWindow("schedule and duration come together: write both")
        return replace(freeze, window=Window.parse(settings.schedule, settings.duration, settings.time_zone))
    begin, end = _time("from", settings.begin), _time("to", settings.end)
    if begin and end and end <= begin:
        raise BadWindow("to is not after from")
    return replace(freeze, begin=begin, end=end)


def _time(field: str, text: str) -> datetime | None:
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise BadWindow(f"{field}: {quoted(text)} is not a time; write RFC 3339, such as 2026-12-20T00:00:00Z")
    return moment
