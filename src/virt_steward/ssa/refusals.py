"""Intents that are never sent, because they would delete or overwrite fields of other managers.

RefusedIntent
├── NotInTable       the field manager is not declared in managers.py
├── NotItsField      it sets a field that its manager does not write, or that only the server sets
├── NotItsForce      it would take fields of others, and its manager may not
├── PartialIntent    it lacks a section in which only its manager owns fields: the server would delete them
└── WouldOverwrite   forced, it would replace an atomic list or map that others own
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from virt_steward.kube.errors import Claim
from virt_steward.objects.canonical import same
from virt_steward.objects.errors import UserError
from virt_steward.objects.fieldpaths import Field, FieldPath, Step, item_steps, readable
from virt_steward.objects.ownership import owned_by_anyone, owners
from virt_steward.objects.paths import Pointer, leaves
from virt_steward.ssa.locks import Lock, Unlocked, observed_object
from virt_steward.ssa.managers import MANAGERS, FieldManager, Force
from virt_steward.ssa.ownership import is_entry_of, owned_alone

if TYPE_CHECKING:
    from collections.abc import Iterator

    from virt_steward.objects.fieldsets import FieldSet
    from virt_steward.ssa.locks import Object

_IDENTITY = frozenset(
    Pointer(tokens) for tokens in (("apiVersion",), ("kind",), ("metadata", "name"), ("metadata", "namespace"))
)
_SET_BY_SERVER = frozenset(
    ("creationTimestamp", "generateName", "generation", "managedFields", "resourceVersion", "selfLink", "uid")
)
_UNRECORDED = "(not recorded)"


class RefusedIntent(UserError):
    """An unsafe intent; nothing was sent."""


class NotInTable(RefusedIntent):
    pass


class NotItsField(RefusedIntent):
    pass


class NotItsForce(RefusedIntent):
    pass


class PartialIntent(RefusedIntent):
    pass


class WouldOverwrite(RefusedIntent):
    """The claims that would be overwritten. List them to take them, or use a patch."""

    def __init__(self, message: str, claims: frozenset[Claim]) -> None:
        super().__init__(message)
        self.claims = claims


def refuse_unsafe(intent: Object, manager: FieldManager, lock: Lock, taking: frozenset[Claim] = frozenset()) -> None:
    """Raise RefusedIntent unless the intent may be sent; `taking` lists what it may take from others."""
    if manager not in MANAGERS:
        raise NotInTable(f"{manager.name} is not in the table of field managers")
    _only_its_fields(intent, manager)
    _only_its_force(manager, lock, taking)
    live = observed_object(lock)
    if live is not None:
        _every_section(intent, manager, live)
        _nothing_undivided_of_others(intent, manager, live, taking)


def _only_its_fields(intent: Object, manager: FieldManager) -> None:
    if preset := sorted(_SET_BY_SERVER & intent["metadata"].keys()):
        raise NotItsField(f"an intent does not set metadata.{preset[0]}: the lock or the server does")
    if manager.is_complete and "status" in intent:
        raise NotItsField(f"{manager.name} does not write the status")
    for pointer, _ in leaves(intent):
        if pointer not in _IDENTITY and not any(_covers(written, pointer) for written in manager.writes):
            raise NotItsField(f"{manager.name} does not write {pointer}")


def _covers(written: Pointer, pointer: Pointer) -> bool:
    return pointer.tokens[: len(written.tokens)] == written.tokens


def _only_its_force(manager: FieldManager, lock: Lock, taking: frozenset[Claim]) -> None:
    if taking and manager.force is Force.NEVER:
        raise NotItsForce(f"{manager.name} takes no field from others")
    if isinstance(lock, Unlocked) and not (manager.is_complete and manager.force is Force.LISTED):
        raise NotItsForce(f"{manager.name} writes only under a lock")


def _every_section(intent: Object, manager: FieldManager, live: Object) -> None:
    alone = owned_alone(live, manager)
    for step in (*alone.members, *alone.children):
        if isinstance(step, Field) and step.name != "metadata" and live.get(step.name) and not intent.get(step.name):
            raise PartialIntent(
                f"{manager.name} alone owns fields in {step.name}, which the intent lacks: carry or release them"
            )


def _nothing_undivided_of_others(intent: Object, manager: FieldManager, live: Object, taking: frozenset[Claim]) -> None:
    if manager.force is not Force.ALWAYS:  # without force, the server reports the owners
        return
    lost = [*_replaced((), intent, live, owned_by_anyone(live))]
    claims = frozenset(claim for path in lost for claim in _claims(path, manager, live)) - taking
    if claims:
        named = ", ".join(sorted(f"{claim.field} of {claim.manager}" for claim in claims))
        raise WouldOverwrite(f"{manager.name} would replace atomic fields: {named}", claims)


def _replaced(path: FieldPath, wanted: Any, live: Any, fields: FieldSet) -> Iterator[FieldPath]:
    """The atomic lists and maps below this path that would get another value."""
    for step, held, is_now in _in_both(wanted, live, fields):
        at, below = (*path, step), fields.below(step)
        match held, is_now:
            case (dict(), dict()) if below or step not in fields.members:
                yield from _replaced(at, held, is_now, below)
            case (list(), list()) if below:
                yield from _replaced(at, held, is_now, below)
            case (dict() | list(), dict() | list()) if is_now and not same(held, is_now):
                yield at


def _in_both(wanted: Any, live: Any, fields: FieldSet) -> Iterator[tuple[Step, Any, Any]]:
    found = _by_step(live, fields)
    for step, held in _by_step(wanted, fields).items():
        if step in found:
            yield step, held, found[step]


def _by_step(value: dict[str, Any] | list[Any], fields: FieldSet) -> dict[Step, Any]:
    if isinstance(value, dict):
        return {Field(name): held for name, held in value.items()}
    names = fields.key_names()
    return {item_steps(item, index, names)[0]: item for index, item in enumerate(value)}


def _claims(path: FieldPath, manager: FieldManager, live: Object) -> Iterator[Claim]:
    """A claim for each other owner of the value; if no owner is recorded at all, one of an unknown owner."""
    holders = [owner for owner, fields in owners(live).items() if path in fields]
    others = [owner for owner in holders if not is_entry_of(owner, manager)]
    for name in {owner.manager for owner in others} if holders else {_UNRECORDED}:
        yield Claim(name, readable(path))
