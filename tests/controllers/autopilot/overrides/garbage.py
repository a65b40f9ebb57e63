"""Annotations as people might write them, good and bad, and what must hold of each."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st

from tests.controllers.autopilot.overrides.contraptions import pointers_in
from tests.objects.builders import managed
from tests.objects.fieldsv1 import encode
from tests.objects.strategies import is_part, maps, names, objects_and_fields, values
from virt_steward.controllers.autopilot.annotation_keys import UNTIL
from virt_steward.controllers.autopilot.overrides import exclusions, scope
from virt_steward.controllers.autopilot.overrides.expiry import EXPIRING, in_force
from virt_steward.controllers.autopilot.overrides.mask import masked, parse
from virt_steward.controllers.autopilot.overrides.patch import FORBIDDEN, Patched, PatchRefused, patched
from virt_steward.objects.canonical import canonical
from virt_steward.objects.paths import NothingThere, Pointer, escape, get
from virt_steward.ssa.managers import AUTOPILOT

LONGEST_REASON = 1000
NOTHING = object()

_tokens = st.one_of(names, st.sampled_from(("spec", "metadata", "labels", "name", "uid", "kind", "status", "1", "01")))
_pointers = st.lists(_tokens, max_size=4).map(lambda tokens: "".join(f"/{escape(token)}" for token in tokens))
_anywhere = st.one_of(_pointers, st.sampled_from([str(path) for path in FORBIDDEN]), st.text(max_size=8))
_operation = st.fixed_dictionaries(
    {"op": st.sampled_from(("add", "remove", "replace", "move", "copy", "test"))},
    optional={"path": _anywhere, "from": _anywhere, "value": values},
)
_json = st.one_of(st.lists(_operation, max_size=5), values).map(json.dumps)


def _cut(texts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """As good ones, or as garbage: broken off, or with something in between."""
    broken = st.tuples(texts, st.integers(0, 200), st.text(max_size=3)).map(
        lambda t: t[0][: t[1]] + t[2] + t[0][t[1] :]
    )
    return st.one_of(texts, broken, st.text(max_size=40))


_words = st.sampled_from(("true", "false", "True", "swap-enable", "psi-enable", "", " ", "a,b"))
_patterns = st.one_of(st.sampled_from(("*", "virt-*", "[a-c]?", "[", "\\", "cluster")), st.text(max_size=6))
_rule = st.dictionaries(
    st.sampled_from(("kind", "name", "namespace", "other")), st.one_of(_patterns, st.none(), st.lists(_patterns))
)

scopes = _cut(st.lists(_words, max_size=4).map(",".join))
exclusion_rules = _cut(st.lists(_rule, max_size=3).map(json.dumps))  # JSON is YAML
patches = _cut(_json)
moments = _cut(st.sampled_from(("2026-11-16T12:00:00Z", "2031-01-01T00:00:00+01:00", "0001-01-01T00:00:00+14:00")))
intents = maps.map(
    lambda spec: {
        "apiVersion": "example.com/v1",
        "kind": "Gadget",
        "metadata": {"name": "g", "labels": {"a": "x"}},
        "spec": spec,
    }
)


@st.composite
def live_objects(draw: st.DrawFn) -> dict[str, Any]:
    """Of which we own some fields, and others some."""
    obj, ours, theirs = draw(objects_and_fields())
    fields = [managed(AUTOPILOT.name, encode(ours)), managed("argocd", encode(theirs))]
    return {**obj, "metadata": {**obj["metadata"], "managedFields": fields}}


@st.composite
def masked_objects(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any], str]:
    """What we want, what is there, and a mask that hits either now and then."""
    intent, live = draw(intents), draw(live_objects())
    hits = [*pointers_in(intent["spec"], "/spec"), *pointers_in(live["spec"], "/spec")]
    texts = _cut(st.lists(st.one_of(st.sampled_from(hits), _anywhere), max_size=4).map(",".join))
    return intent, live, draw(texts)


def is_reason(text: str) -> bool:
    return 0 < len(text) <= LONGEST_REASON


def at(obj: Any, pointer: Pointer) -> Any:
    try:
        return get(obj, pointer)
    except NothingThere:
        return NOTHING


def scope_is_told(text: str) -> None:
    match scope.parse(text):
        case scope.Idle(why):
            assert is_reason(why)
        case scope.Only(wanted):
            assert wanted
            assert all(name.strip() == name != "" for name in wanted)
        case scope.Everything():
            assert text.strip() == "true"


def exclusions_are_told(text: str) -> None:
    match exclusions.parse(text):
        case exclusions.UnreadableExclusions(why):
            assert is_reason(why)
        case found:
            rule = found.excludes("Gadget", "here", "virt-a")
            assert rule is None or rule.kind == "Gadget"


def patch_spares_what_is_protected(intent: dict[str, Any], text: str) -> None:
    before = canonical(intent)
    match patched(intent, text):
        case PatchRefused(why):
            assert is_reason(why)
        case Patched(obj, operations):
            assert operations >= 0
            assert [at(obj, path) for path in FORBIDDEN] == [at(intent, path) for path in FORBIDDEN]
    assert canonical(intent) == before


def mask_sends_no_other_value(intent: dict[str, Any], live: dict[str, Any], text: str) -> None:
    mask = parse(text)
    assert all(is_reason(str(bad)) for bad in mask.bad)
    left = masked(intent, live, AUTOPILOT, mask)
    assert len(left.notes) == len(mask.pointers)
    assert all(map(is_reason, left.notes))
    assert left.intent["metadata"]["name"] == "g"
    for pointer in mask.pointers:
        ways = [at(live, Pointer(pointer.tokens[:length])) for length in range(len(pointer.tokens))]
        sent, held = at(left.intent, pointer), at(live, pointer)
        if any(isinstance(way, list) for way in ways) or sent is NOTHING:
            continue  # an index means another item there; a server tells what comes of it
        assert held is not NOTHING
        assert pointer.tokens == ("metadata",) or is_part(sent, held)


def expiry_is_told(text: str) -> None:
    annotations = {**dict.fromkeys(EXPIRING, "x"), UNTIL: text}
    found = in_force(annotations, datetime(2026, 11, 16, tzinfo=UTC))
    assert len(found.remarks) == 1
    assert is_reason(found.remarks[0].message)
    assert (EXPIRING[0] in found.overrides) is (found.remarks[0].reason != "OverrideLifted")
