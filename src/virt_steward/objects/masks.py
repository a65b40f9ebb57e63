"""Mask secret values: the mask shows neither content nor length, only whether the value changed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from virt_steward.objects.canonical import same
from virt_steward.objects.identity import Kind, kind_of
from virt_steward.objects.paths import Pointer

if TYPE_CHECKING:
    from collections.abc import Mapping

MASK = "•••"
CHANGED = "••• (changed)"

_ANY = "*"
_SECRET_NAME = re.compile(r"(?i)(password|passwd|passphrase|password_?hash|private_?key|api_?key|secret|token)$")
"""Not `secretName` or `tokenTTL`, which tell no secret."""
_ABSENT = object()


@dataclass(frozen=True, slots=True)
class Sensitive:
    """Where a kind keeps secrets. In the paths, `*` stands for every name or index."""

    kind: Kind
    paths: tuple[str, ...]


_CLOUD_INIT = tuple(
    f"/volumes/*/{source}/{data}"
    for source in ("cloudInitNoCloud", "cloudInitConfigDrive")
    for data in ("userData", "userDataBase64", "networkData", "networkDataBase64")
)

SENSITIVE = (
    Sensitive(Kind("", "Secret"), ("/data", "/stringData")),
    Sensitive(
        Kind("machineconfiguration.openshift.io", "MachineConfig"), ("/spec/config/passwd/users/*/passwordHash",)
    ),
    Sensitive(Kind("kubevirt.io", "VirtualMachine"), tuple(f"/spec/template/spec{path}" for path in _CLOUD_INIT)),
    Sensitive(Kind("kubevirt.io", "VirtualMachineInstance"), tuple(f"/spec{path}" for path in _CLOUD_INIT)),
)

# kubectl keeps a copy of the whole manifest here, with secrets
_LAST_APPLIED = "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration"


def masked(obj: Mapping[str, Any]) -> dict[str, Any]:
    """Return the object with every secret value masked; the names of the values stay."""
    return _masked(dict(obj), _ABSENT, kind_of(obj))


def masked_by_name(value: Any, name: str = "") -> Any:
    """Mask a value whose name says that it is a secret, and such values within it, whatever their kind of object."""
    if _SECRET_NAME.search(name):
        return MASK
    if isinstance(value, dict):
        return {key: masked_by_name(held, key) for key, held in value.items()}
    return [masked_by_name(one) for one in value] if isinstance(value, list) else value


def masked_change(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Mask two states of one object; values that were there before and differ say so in the second."""
    return masked(before), _masked(dict(after), before, kind_of(after))


def _masked(obj: dict[str, Any], before: Any, kind: Kind) -> dict[str, Any]:
    for path in _secret_paths(kind):
        obj = _masked_at(obj, before, path.tokens)
    return obj


def _secret_paths(kind: Kind) -> tuple[Pointer, ...]:
    paths = [path for sensitive in SENSITIVE if sensitive.kind == kind for path in sensitive.paths]
    return tuple(Pointer.parse(path) for path in (*paths, _LAST_APPLIED)) if paths else ()


def _masked_at(value: Any, before: Any, tokens: tuple[str, ...]) -> Any:
    if not tokens:
        return _hidden(value, before)
    token, *rest = tokens
    match value:
        case dict():
            return {
                name: _masked_at(held, _was(before, name), tuple(rest)) if token in (name, _ANY) else held
                for name, held in value.items()
            }
        case list() if token == _ANY:
            return [_masked_at(held, _was(before, index), tuple(rest)) for index, held in enumerate(value)]
    return value


def _hidden(value: Any, before: Any) -> Any:
    if isinstance(value, dict):
        return {name: _hidden(held, _was(before, name)) for name, held in value.items()}
    return MASK if before is _ABSENT or same(value, before) else CHANGED


def _was(before: Any, place: str | int) -> Any:
    match before, place:
        case dict(), str() if place in before:
            return before[place]
        case list(), int() if place < len(before):
            return before[place]
    return _ABSENT
