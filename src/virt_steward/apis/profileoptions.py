"""How the options of profiles form one field each of spec.options, and the rules that follow from that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, TypeVar

import msgspec

from virt_steward.apis.schema import ApiStruct, rule

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


class OptionsStruct(ApiStruct, frozen=True):
    """The options of one profile."""

    profile: ClassVar[str]
    """The profile whose options these are."""

    def contradiction(self) -> str:
        """What the CEL rules of the type refuse of these values; empty if nothing."""
        return ""


AnyOptions = TypeVar("AnyOptions", bound=OptionsStruct)


@dataclass(frozen=True, slots=True)
class OptionsField:
    """Where the options of a profile are, and their type."""

    name: str
    """The field of spec.options, such as `loadAware`."""
    attribute: str
    """The same in ProfileOptions, such as `load_aware`."""
    type: type[OptionsStruct]


def options_fields(struct: type[ApiStruct]) -> dict[str, OptionsField]:
    """The fields of a struct by the profile whose options they hold. Each is declared as `SomeOptions | None`."""
    return {found.type.profile: found for found in _fields(msgspec.inspect.type_info(struct))}


def _fields(struct: msgspec.inspect.Type) -> Iterator[OptionsField]:
    for field in struct.fields if isinstance(struct, msgspec.inspect.StructType) else ():
        inner = field.type.type if isinstance(field.type, msgspec.inspect.Metadata) else field.type
        for one in inner.types if isinstance(inner, msgspec.inspect.UnionType) else (inner,):
            if isinstance(one, msgspec.inspect.StructType) and issubclass(one.cls, OptionsStruct):
                yield OptionsField(field.encode_name, field.name, one.cls)


def options_rules(table: Mapping[str, OptionsField]) -> tuple[msgspec.Meta, ...]:
    """CEL rules of the spec: a profile takes its own options and no others, and options need their profile."""
    return (
        *(_only_own_options(profile, field.name, table) for profile, field in table.items()),
        *(_only_with_profile(profile, field.name) for profile, field in table.items()),
    )


def _only_own_options(profile: str, own: str, table: Mapping[str, OptionsField]) -> msgspec.Meta:
    others = "".join(f" && !has(self.options.{one.name})" for one in table.values() if one.name != own)
    return rule(
        f"self.profile != '{profile}' || !has(self.options) || (has(self.options.{own}){others})",
        f"When profile is '{profile}', only options.{own} may be set",
    )


def _only_with_profile(profile: str, own: str) -> msgspec.Meta:
    return rule(
        f"!has(self.options) || !has(self.options.{own}) || self.profile == '{profile}'",
        f"options.{own} can only be used with profile '{profile}'",
    )
