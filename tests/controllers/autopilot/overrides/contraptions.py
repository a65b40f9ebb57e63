"""A kind with every sort of list and map, what several managers may do to an object of it, and how to look at that."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, Phase, assume, settings
from hypothesis import strategies as st

from tests.widgets import GROUP, V1
from virt_steward.controllers.autopilot.overrides.mask import masked
from virt_steward.kube.errors import Invalid
from virt_steward.objects.identity import ref_of
from virt_steward.objects.paths import escape
from virt_steward.ssa.locks import ObservedAs, locked
from virt_steward.ssa.managers import AUTOPILOT
from virt_steward.ssa.refusals import refuse_unsafe

if TYPE_CHECKING:
    from collections.abc import Iterator

    from virt_steward.controllers.autopilot.overrides.mask import Mask
    from virt_steward.kube.client import Client

Object = dict[str, Any]
Place = tuple[tuple[str, Any], ...]

MISSING = object()
OTHERS = ("argocd", "kubectl-edit")

_numbers = itertools.count(1)

_TEXT = {"type": "string"}
_NUMBER = {"type": "integer"}
_TEXTS = {"type": "object", "additionalProperties": _TEXT}
_PORT = {"name": _TEXT, "port": _NUMBER, "labels": _TEXTS}
_INNER = {"type": "object", "properties": {"c": _NUMBER, "d": _NUMBER}}
_SPEC: dict[str, Any] = {
    "base": _NUMBER,
    "size": _NUMBER,
    "nested": {"type": "object", "properties": {"a": _NUMBER, "inner": _INNER}},
    "args": {"type": "array", "items": _TEXT},
    "things": {"type": "array", "items": {"type": "object", "properties": {"id": _TEXT, "v": _NUMBER}}},
    "limits": {**_TEXTS, "x-kubernetes-map-type": "atomic"},
    "tags": {"type": "array", "items": _TEXT, "x-kubernetes-list-type": "set"},
    "ports": {
        "type": "array",
        "items": {"type": "object", "required": ["name"], "properties": _PORT},
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
    },
    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    "mode": {**_TEXT, "default": "Automatic"},
}


def _version(name: str) -> Object:
    spec = {"type": "object", "properties": _SPEC}
    return {
        "name": name,
        "served": True,
        "storage": name == "v1",
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
    }


DEFINITION: Object = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"contraptions.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"kind": "Contraption", "plural": "contraptions"},
        "versions": [_version("v1"), _version("v1beta1")],
    },
}


def on_a_server(examples: int) -> settings:
    """Without shrinking, which would take the server's time many times over."""
    return settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=(Phase.generate,),
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )


def a_contraption(namespace: str, name: str, *, version: str = "v1", **spec: Any) -> Object:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": V1.replace("v1", version), "kind": "Contraption", "metadata": metadata, "spec": spec}


def a_name() -> str:
    return f"c-{next(_numbers)}"


def _some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Object]:
    return st.fixed_dictionaries({}, optional=fields)


_few = st.integers(0, 2)
_texts = st.sampled_from(("p", "q"))
_free = st.recursive(
    _few, lambda inner: st.one_of(_some(x=inner, y=inner), st.lists(inner, min_size=1, max_size=2)), max_leaves=5
)
_ports = st.lists(
    st.tuples(st.sampled_from(("web", "dns")), _some(port=_few, labels=_some(l=_texts, m=_texts))),
    max_size=2,
    unique_by=lambda port: port[0],
).map(lambda ports: [{"name": name, **rest} for name, rest in ports])
specs = st.fixed_dictionaries(
    {"base": st.just(1)},  # a spec that loses all that it has behaves oddly, and no asset has one
    optional={
        "size": _few,
        "nested": _some(a=_few, inner=_some(c=_few, d=_few)),
        "args": st.lists(_texts, max_size=3),
        "things": st.lists(_some(id=_texts, v=_few), max_size=2),
        "limits": _some(cpu=_texts, memory=_texts),
        "tags": st.lists(_texts, max_size=2, unique=True),
        "ports": _ports,
        "free": _some(x=_free, y=_free),
    },
)
labels = _some(l=_texts, m=_texts)


@dataclass(frozen=True)
class Write:
    """What somebody does to the object."""

    by: str
    spec: Object
    labels: Object
    as_update: bool


writes = st.one_of(
    st.builds(Write, st.just(AUTOPILOT.name), specs, labels, st.just(False)),
    st.builds(Write, st.sampled_from(OTHERS), specs, labels, st.booleans()),
)


async def written(client: Client, obj: Object, write: Write) -> Object:
    """Do it, and return what the server then has."""
    content = {"metadata": {**obj["metadata"], "labels": write.labels}, "spec": write.spec}
    if write.as_update:
        return await client.merge_patch(ref_of(obj), content, manager=write.by)
    return await sent(client, {**obj, **content}, by=write.by)


async def sent(client: Client, intent: Object, *, by: str = AUTOPILOT.name, dry_run: bool = False) -> Object:
    try:
        return (await client.apply(intent, manager=by, force=True, dry_run=dry_run)).object
    except Invalid as error:
        assume('"null"' not in str(error))  # the server's own fault: a map that loses all it has becomes null
        raise


async def masked_apply(client: Client, intent: Object, mask: Mask) -> Object:
    """Apply what a mask leaves of the intent, and return what the server then has."""
    live = await client.get(ref_of(intent))
    left = masked(intent, live, AUTOPILOT, mask)
    assert len(left.notes) == len(mask.pointers)
    refuse_unsafe(left.intent, AUTOPILOT, ObservedAs(live))
    return await sent(client, locked(left.intent, ObservedAs(live)))


async def unrecorded(client: Client, obj: Object) -> Object:
    """Forget who owns what."""
    nobody = {
        "manager": "nobody",
        "operation": "Update",
        "apiVersion": obj["apiVersion"],
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:metadata": {"f:name": {}}},
    }
    return await client.merge_patch(ref_of(obj), {"metadata": {"managedFields": [nobody]}}, manager="nobody")


def pointers_in(value: Any, at: str = "") -> Iterator[str]:
    """Walk all places of a value, by index in every list."""
    if at:
        yield at
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, held in entries:
        yield from pointers_in(held, f"{at}/{escape(str(name))}")


def place_of(obj: Object, pointer: str) -> Place:
    """Tell where a pointer leads, with items by what they go by: what must not change, wherever the item stands."""
    place: list[tuple[str, Any]] = []
    value: Any = obj
    above = ""
    for token in pointer[1:].split("/"):
        step: tuple[str, Any] = ("field", token)
        if token.isdigit():
            step = ("index", int(token))
            held = look(value, (step,))
            if held is not MISSING and above in ("ports", "tags") and len(place) == 2:
                step = ("name", held["name"]) if above == "ports" else ("value", held)
        place.append(step)
        value, above = look(value, (step,)), token
    return tuple(place)


def look(value: Any, place: Place) -> Any:
    for how, what in place:
        match how, value:
            case "field", dict() if what in value:
                value = value[what]
            case "index", list() if what < len(value):
                value = value[what]
            case (("name" | "value"), list()):
                wanted = [item for item in value if item == what or (how == "name" and item["name"] == what)]
                value = wanted[0] if wanted else MISSING
            case _:
                return MISSING
    return value


def facts(value: Any, at: Place = ()) -> dict[Place, Any]:
    """Say all of a value in leaves, with items by what they go by; undivided lists and maps are leaves."""
    match at, value:
        case ((("field", "spec"), ("field", "ports")), list()):
            return {k: v for item in value for k, v in facts(item, (*at, ("name", item["name"]))).items()}
        case ((("field", "spec"), ("field", "tags")), list()):
            return {(*at, ("value", item)): item for item in value}
        case ((("field", "spec"), ("field", "limits")), _):
            return {at: value}
        case _, dict():
            return {k: v for name, held in value.items() for k, v in facts(held, (*at, ("field", name))).items()}
    return {at: value}
