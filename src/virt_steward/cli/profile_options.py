"""Options of a profile as words of the command line (`--set NAME=VALUE`), checked by the types of the API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from virt_steward.apis.virtplatformconfig import HIGHER_DENSITY, LOAD_AWARE, ProfileOptions
from virt_steward.objects.paths import Pointer, with_value
from virt_steward.settings import BadSetting

if TYPE_CHECKING:
    from collections.abc import Sequence

SECTIONS = {LOAD_AWARE: "loadAware", HIGHER_DENSITY: "virtHigherDensity"}
"""Where the options of a profile are; one without options is not here."""


def wished(profile: str, sets: Sequence[str], before: ProfileOptions) -> ProfileOptions:
    """The options with these changes. Raises BadSetting with what to write instead."""
    after = before
    for text in sets:
        after = _with(profile, text, after)
    if contradiction := contradiction_in(after):
        raise BadSetting(f"--set {' '.join(sets)}: {contradiction}")
    return after


def contradiction_in(options: ProfileOptions) -> str:
    """What the definition of the kind would refuse of options that are right one by one; empty if nothing."""
    density = options.virt_higher_density
    if density and density.memory_to_request_ratio > 120 and not density.enable_swap:
        return "memoryToRequestRatio > 120 requires enableSwap=true"
    return ""


def _with(profile: str, text: str, before: ProfileOptions) -> ProfileOptions:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise BadSetting(f"--set {text}: write NAME=VALUE, such as {_example(profile)}")
    section = SECTIONS.get(profile)
    if section is None:
        raise BadSetting(f"--set {text}: {profile} has no options")
    path = name.removeprefix(f"{section}.").split(".")
    _must_exist(text, _struct_of(section), path)
    changed = with_value(msgspec.to_builtins(before), Pointer((section, *path)), _read(value))
    try:
        return msgspec.convert(changed, ProfileOptions, strict=False)
    except msgspec.ValidationError as error:
        raise BadSetting(f"--set {text}: {str(error).partition(' - at ')[0].replace('`', '')}") from None


def _read(value: str) -> Any:
    """Words are converted by the type of the option; braces and brackets hold JSON."""
    if value[:1] not in ("{", "["):
        return value
    try:
        return msgspec.json.decode(value)
    except msgspec.DecodeError:
        return value


def _must_exist(text: str, struct: Any, path: Sequence[str]) -> None:
    """An unknown name would be ignored."""
    for number, name in enumerate(path):
        fields = _fields_of(struct)
        if fields is None:  # a map takes any name
            return
        if name not in fields:
            at = ".".join(path[:number])
            there = ", ".join(fields) or "nothing"
            raise BadSetting(
                f"--set {text}: there is no option {name!r}{f' in {at}' if at else ''}; there are: {there}"
            )
        struct = fields[name]


def _struct_of(section: str) -> Any:
    return (_fields_of(msgspec.inspect.type_info(ProfileOptions)) or {})[section]


def _fields_of(kind: Any) -> dict[str, Any] | None:
    """The fields of a struct, also of one that may be absent; none of a single value, None of a map."""
    match kind:
        case msgspec.inspect.Metadata(type=inner):
            return _fields_of(inner)
        case msgspec.inspect.UnionType(types=types):
            return _fields_of(next(one for one in types if not isinstance(one, msgspec.inspect.NoneType)))
        case msgspec.inspect.StructType(fields=fields):
            return {field.encode_name: field.type for field in fields}
        case msgspec.inspect.DictType():
            return None
    return {}


def _example(profile: str) -> str:
    section = SECTIONS.get(profile)
    return f"{section}.{next(iter(_fields_of(_struct_of(section)) or {}))}=…" if section else "NAME=…"
