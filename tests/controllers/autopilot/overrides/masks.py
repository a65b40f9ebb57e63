"""What must hold of a mask, whoever did what to the object before."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hypothesis import assume
from hypothesis import strategies as st

from tests.controllers.autopilot.overrides.contraptions import (
    MISSING,
    Object,
    Place,
    a_contraption,
    a_name,
    facts,
    labels,
    look,
    masked_apply,
    place_of,
    pointers_in,
    sent,
    specs,
    unrecorded,
    writes,
    written,
)
from virt_steward.controllers.autopilot.overrides.mask import Mask, parse
from virt_steward.kube.errors import Invalid
from virt_steward.objects.identity import ref_of
from virt_steward.objects.normalize import sanitized
from virt_steward.ssa.managers import AUTOPILOT
from virt_steward.ssa.ownership import carried

if TYPE_CHECKING:
    from virt_steward.kube.client import Client


@dataclass(frozen=True)
class Scene:
    """An object that several managers have written, what we want of it, and what is masked."""

    live: Object
    intent: Object
    texts: list[str]
    forgotten: bool
    """Nobody is recorded as the owner of anything."""

    @property
    def mask(self) -> Mask:
        return parse(",".join(self.texts))

    @property
    def places(self) -> dict[str, Place]:
        return {text: place_of(self.live, text) for text in self.texts}


async def a_scene(client: Client, namespace: str, data: st.DataObject) -> Scene:
    obj = a_contraption(namespace, a_name())
    live: Object = {}
    first = data.draw(writes.filter(lambda write: not write.as_update), label="first")
    for write in (first, *data.draw(st.lists(writes, max_size=3), label="writes")):
        live = await written(client, obj, write)
    forgotten = data.draw(st.integers(0, 9), label="forgotten") == 0
    if forgotten:
        live = await unrecorded(client, obj)
    wanted = {**obj["metadata"], "labels": data.draw(labels, label="labels")}
    intent = {**obj, "metadata": wanted, "spec": data.draw(specs, label="intent")}
    in_specs = {*pointers_in(live.get("spec"), "/spec"), *pointers_in(intent["spec"], "/spec")}
    texts = st.lists(st.sampled_from(sorted({*in_specs, "/metadata/labels/l", "/metadata/labels"})), max_size=3)
    return Scene(live, intent, data.draw(texts.filter(bool), label="mask"), forgotten)


async def masked_values_stay(client: Client, scene: Scene) -> None:
    """Masked values are as they were, all else is as wanted, and a second apply changes nothing."""
    plain = await sent(client, scene.intent, dry_run=True)
    everything = await sent(client, carried(scene.intent, scene.live, AUTOPILOT), dry_run=True)
    after = await masked_apply(client, scene.intent, scene.mask)
    for text, place in scene.places.items():
        assert look(after, place) == look(scene.live, place), text
    if all(f"/spec/{name}" in scene.places for name in scene.intent["spec"]) and after["spec"] == scene.live["spec"]:
        return  # all that is wanted of the section is masked, so nothing of it is sent, and it stays as it is
    ends = ("index", "name", "value") if scene.forgotten else ("index",)
    touched = [_whole(place, ends) for place in scene.places.values()]
    lists = [_whole(place, ("index", "name", "value")) for place in scene.places.values()]
    assert _besides(after, lists) == _besides(plain, lists)
    kept = _besides(everything, touched)  # items before a masked one stay, so that its index does
    wanted = _besides(plain, touched)
    assert {
        at: value for at, value in _besides(after, touched).items() if wanted.get(at) != value
    }.items() <= kept.items()
    assert wanted.keys() <= _besides(after, touched).keys()

    again = await masked_apply(client, scene.intent, scene.mask)
    for text in scene.texts:
        place = place_of(after, text)
        assert look(again, place) == look(after, place), text
    assert sanitized(await masked_apply(client, scene.intent, scene.mask)) == sanitized(again)


async def edits_survive(client: Client, scene: Scene, data: st.DataObject) -> None:
    """Somebody changes or removes a masked value, after we have applied: it stays so."""
    before = await masked_apply(client, scene.intent, scene.mask)
    text = data.draw(st.sampled_from(scene.texts), label="edited")
    place = place_of(before, text)
    value = look(before, place)
    assume(value is not MISSING and not text.endswith("/name"))
    edit: dict[str, Any] = {"op": "replace", "path": text, "value": 7 if isinstance(value, int) else "edited"}
    if not isinstance(value, int | str) or (data.draw(st.booleans(), label="removed") and place[-1][0] == "field"):
        edit = {"op": "remove", "path": text}
        assume(all(how == "field" for how, _ in place))  # else the index would be another item's
    try:
        edited = await client.json_patch(ref_of(scene.intent), [edit], manager="kubectl-edit")
    except Invalid:
        assume(condition=False)
    place = place_of(edited, text)
    after = await masked_apply(client, scene.intent, scene.mask)
    assert look(after, place) == look(edited, place), edit


def _besides(obj: Object, places: list[Place]) -> dict[Place, Any]:
    """Say all of the spec and the labels but what the places lead to, or are inside of."""
    told = facts({"spec": obj.get("spec", {}), "metadata": {"labels": obj["metadata"].get("labels", {})}})
    return {
        at: value
        for at, value in told.items()
        if value not in ({}, []) and at[-1][1] != "name" and not any(_overlap(at, place) for place in places)
    }


def _overlap(one: Place, other: Place) -> bool:
    return all(a == b for a, b in zip(one, other, strict=False))


def _whole(place: Place, ends: tuple[str, ...]) -> Place:
    """Lists end before an item that is not to be there, and in free form a list may be where a map was."""
    if ("field", "free") in place:
        return place[:3]
    return tuple(itertools.takewhile(lambda step: step[0] not in ends, place))
