"""Options of a profile from the command line (`--set NAME=VALUE`), checked by the types of the API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from virt_steward.apis.profiles import OPTIONS_OF, ProfileOptions
from virt_steward.objects.paths import Pointer, with_value
from virt_steward.settings import BadSetting

if TYPE_CHECKING:
    from collections.abc import Sequence


def set_options(profile: str, sets: Sequence[str], before: ProfileOptions) -> ProfileOptions:
    """The options with these changes. Raises BadSetting, which says what to write instead."""
    after = before
    for text in sets:
        after = _with(profile, text, after)
    if contradiction := after.contradiction():
        raise BadSetting(f"--set {' '.join(sets)}: {contradiction}")
    return after


def _with(profile: str, text: str, before: ProfileOptions) -> ProfileOptions:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise BadSetting(f"--set {text}: write NAME=VALUE, such as {_example(profile)}")
    field = OPTIONS_OF.get(profile)
    if field is None:
        raise BadSetting(f"--set {text}: {profile} has no options")
    section = field.name
    path = name.removeprefix(f"{section}.").split(".")
    kind = _type_at(text, msgspec.inspect.type_info(field.type), path)
    changed = with_value(msgspec.to_builtins(before), Pointer((section, *path)), _read(value))
    try:
        return msgspec.convert(changed, ProfileOptions, strict=False)
    except ValueError as error:  # also for half a character, which a terminal may pass on
        raise BadSetting(f"--set {text}: {_complaint(path[-1], kind, value, str(error))}") from None


def _read(value: str) -> Any:
    """A plain value is converted by the type of the option; one in braces or brackets is JSON."""
    if value[:1] not in ("{", "["):
        return value
    try:
        return msgspec.json.decode(value)
    except (ValueError, RecursionError):
        return value


def _complaint(name: str, kind: Any, value: str, error: str) -> str:
    """What is wrong with a value, by the type of the option."""
    match _inner(kind):
        case msgspec.inspect.LiteralType(values=choices):
            return f"{name} must be {' or '.join(map(str, choices))}, not {value}"
        case msgspec.inspect.BoolType():
            return f"{name} must be true or false, not {value}"
        case msgspec.inspect.IntType(ge=least, le=most):
            return f"{name} must be a whole number from {least} to {most}, not {value}"
    return error.partition(" - at ")[0].replace("`", "")


def _type_at(text: str, kind: Any, path: Sequence[str]) -> Any:
    """The type of the option at a path. Raises BadSetting for an unknown name, which would be ignored otherwise."""
    for number, name in enumerate(path):
        fields = _fields_of(kind)
        if fields is None:  # a map takes any name
            return None
        if name not in fields:
            at = ".".join(path[:number])
            there = ", ".join(fields) or "nothing"
            raise BadSetting(
                f"--set {text}: there is no option {name!r}{f' in {at}' if at else ''}; there are: {there}"
            )
        kind = fields[name]
    return kind


def _fields_of(kind: Any) -> dict[str, Any] | None:
    """The fields of a struct, also of one that may be absent; none of a single value, None of a map."""
    match _inner(kind):
        case msgspec.inspect.StructType(fields=fields):
            return {field.encode_name: field.type for field in fields}
        case msgspec.inspect.DictType():
            return None
    return {}


def _inner(kind: Any) -> Any:
    """The type without its description, and without None."""
    match kind:
        case msgspec.inspect.Metadata(type=inner):
            return _inner(inner)
        case msgspec.inspect.UnionType(types=types):
            return _inner(next(one for one in types if not isinstance(one, msgspec.inspect.NoneType)))
    return kind


def _example(profile: str) -> str:
    field = OPTIONS_OF.get(profile)
    return f"{field.name}.{field.type.__struct_encode_fields__[0]}=…" if field else "NAME=…"
