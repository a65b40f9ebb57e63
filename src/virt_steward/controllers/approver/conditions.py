"""The state of an approver itself: whether it is understood, heard, and able to see what it looks after."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from virt_steward.apis.installplanapprover import COUNTED_PLANS_KEPT
from virt_steward.apis.meta import Condition
from virt_steward.controllers.approver.policy import fault_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from datetime import datetime

    from virt_steward.controllers.approver.observation import Approver


@dataclass(frozen=True, slots=True)
class Abilities:
    """What this process can do for an approver."""

    endpoints: Collection[str] = ()
    """Where it can send notices, by name."""
    denied: Collection[str] = ()
    """Namespaces that it should look at and may not."""
    watched: Collection[str] = ()
    """The only namespaces that it looks at; none means all."""
    places: Mapping[str, str] = field(default_factory=dict)
    """The namespaces of approved plans that it has seen, by uid."""


ABLE = Abilities()


@dataclass(frozen=True, slots=True)
class _Fact:
    type: str
    reason: str
    fault: str = ""
    """Empty where all is well."""


def conditions_of(
    approver: Approver, abilities: Abilities, now: datetime, counted: Collection[str] = ()
) -> tuple[Condition, ...]:
    """`counted` are the plans that the status will remember."""
    facts = (
        _policy(approver),
        _notices(approver, abilities),
        _sight(approver, abilities),
        _count(approver, abilities, len(counted)),
    )
    return tuple(_condition(fact, approver, now) for fact in facts if fact)


def how_to_allow(namespaces: Collection[str]) -> str:
    """An empty name stands for the whole cluster."""
    targets = "" if "" in namespaces else f" --target-namespaces {','.join(sorted(namespaces))}"
    return (
        f"apply what 'virt-steward rbac --controllers approver{targets}' prints "
        "(with --namespace, if it is installed elsewhere than in virt-steward)"
    )


def _policy(approver: Approver) -> _Fact:
    if fault := fault_of(approver.spec.policy):
        return _Fact("PolicyValid", "BadPolicy", f"{fault}; nothing is approved until that is corrected")
    return _Fact("PolicyValid", "Understood")


def _notices(approver: Approver, abilities: Abilities) -> _Fact | None:
    name = approver.spec.notify
    if not name:
        return None
    if name not in abilities.endpoints:
        known = ", ".join(sorted(abilities.endpoints)) or "none"
        fault = f"no endpoint is called {name}, so nobody is notified; the controller's settings have: {known}"
        return _Fact("Notifying", "UnknownEndpoint", fault)
    return _Fact("Notifying", "EndpointKnown")


def _sight(approver: Approver, abilities: Abilities) -> _Fact | None:
    targets = approver.spec.target_namespaces
    denied = sorted(name for name in abilities.denied if not name or not targets or name in targets)
    if denied:
        places = "all that it should" if "" in denied else ", ".join(denied)
        fault = f"the controller may not look into {places}, so nothing is approved there: "
        return _Fact("NamespacesReadable", "Forbidden", fault + how_to_allow(denied))
    if left_out := sorted(name for name in targets if abilities.watched and name not in abilities.watched):
        names = ", ".join(left_out)
        fault = f"the controller does not look into {names}: add that to its --watch-namespaces"
        return _Fact("NamespacesReadable", "NotWatched", fault)
    return _well_again(approver, "NamespacesReadable", "Allowed")


def _count(approver: Approver, abilities: Abilities, counted: int) -> _Fact | None:
    if counted < COUNTED_PLANS_KEPT:
        return _well_again(approver, "CountExact", "AllRemembered")
    full = f"{counted} plans are remembered as counted, and there is no room for more"
    if abilities.watched:
        fault = (
            f"{full}: the oldest of which nothing is known are forgotten, and counted again if their namespaces are "
            "looked at again; run it once without --watch-namespaces, so that it can tell which of them are gone"
        )
        return _Fact("CountExact", "OldestForgotten", fault)
    fault = f"{full}: further approvals are neither counted nor told; delete InstallPlans that are complete"
    return _Fact("CountExact", "TooManyPlans", fault)


def _well_again(approver: Approver, type_: str, reason: str) -> _Fact | None:
    """Said only where something else was said before."""
    return _Fact(type_, reason) if any(one.type == type_ for one in approver.status.conditions) else None


def _condition(fact: _Fact, approver: Approver, now: datetime) -> Condition:
    new = Condition(
        type=fact.type,
        status="False" if fact.fault else "True",
        reason=fact.reason,
        message=fact.fault,
        last_transition_time=now,
        observed_generation=approver.metadata.generation,
    )
    return new.carrying_on(approver.status.conditions)
