"""The options of a profile as fields of a form, made from the schema that the CRD publishes, and read back from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from virt_steward.apis.profiles import OPTIONS_OF
from virt_steward.apis.schema import schema_of
from virt_steward.objects.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

FieldKind = Literal["switch", "choice", "number", "text", "labels"]


class BadOption(UserError):
    """A form field has an invalid value: one line that names the field."""


@dataclass(frozen=True, slots=True)
class FormField:
    path: tuple[str, ...]
    kind: FieldKind
    help: str
    value: str
    """As the form shows it; a switch is `true` or empty."""
    default: str = ""
    choices: tuple[str, ...] = ()
    least: int | None = None
    most: int | None = None

    @property
    def name(self) -> str:
        return ".".join(self.path)


def fields(profile: str, options: Mapping[str, Any]) -> tuple[FormField, ...]:
    """All options that a form can set, with their current values; `options` are those of the spec."""
    section = OPTIONS_OF.get(profile)
    if section is None:
        return ()
    return tuple(_fields(schema_of(section.type), (section.name,), options.get(section.name) or {}))


def read(profile: str, filled: Mapping[str, str], before: Mapping[str, Any]) -> dict[str, Any] | None:
    """A merge patch from the options `before` to those of the form; a field that was left empty is removed.

    None if the profile has no options.
    """
    if profile not in OPTIONS_OF:
        return None
    patch: dict[str, Any] = {}
    for field in fields(profile, {}):
        place, current = patch, before
        for name in field.path[:-1]:
            place, current = place.setdefault(name, {}), current.get(name) or {}
        value = _value(field, filled.get(f"option.{field.name}", "").strip())
        place[field.path[-1]] = _replacing(current.get(field.path[-1]), value)
    return patch


def _fields(schema: Mapping[str, Any], path: tuple[str, ...], values: Mapping[str, Any]) -> Iterator[FormField]:
    for name, one in schema.get("properties", {}).items():
        here, value = (*path, name), values.get(name)
        if one.get("type") == "object" and "properties" in one:
            yield from _fields(one, here, value or {})
        elif field := _field(one, here, value):
            yield field


def _field(schema: Mapping[str, Any], path: tuple[str, ...], value: Any) -> FormField | None:
    """None: a simple field cannot set this one, so the form leaves it out."""
    help_text, default = schema.get("description", ""), schema.get("default")
    match schema.get("type"):
        case "boolean":
            chosen = default if value is None else value
            return FormField(path, "switch", help_text, "true" if chosen else "", "on" if default else "off")
        case "string" if "enum" in schema:
            return FormField(
                path, "choice", help_text, str(value or default or ""), str(default or ""), tuple(schema["enum"])
            )
        case "integer":
            shown = "" if value is None else str(value)
            least, most = schema.get("minimum"), schema.get("maximum")
            return FormField(path, "number", help_text, shown, str(default or ""), least=least, most=most)
        case "string":
            return FormField(path, "text", help_text, str(value or ""), str(default or ""))
        case "object" if schema.get("additionalProperties", {}).get("type") == "string":
            shown = ", ".join(f"{key}={held}" for key, held in sorted((value or {}).items()))
            return FormField(path, "labels", help_text, shown)
    return None


def _value(field: FormField, text: str) -> Any:
    match field.kind:
        case "switch":
            return text == "true"
        case _ if not text:
            return None
        case "number":
            return _number(field, text)
        case "labels":
            return _labels(field, text)
        case "choice" if text not in field.choices:
            raise BadOption(f"{field.name}: must be one of {', '.join(field.choices)}, not {text[:40]!r}")
    return text


def _replacing(before: Any, value: Any) -> Any:
    """A merge patch keeps the labels that it does not name, so those that go are set to null."""
    if isinstance(before, dict) and isinstance(value, dict):
        return dict.fromkeys(before) | value
    return value


def _number(field: FormField, text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise BadOption(f"{field.name}: must be a whole number, not {text[:40]!r}")
    number = int(text)
    if (field.least is not None and number < field.least) or (field.most is not None and number > field.most):
        raise BadOption(f"{field.name}: must be between {field.least} and {field.most}, not {number}")
    return number


def _labels(field: FormField, text: str) -> dict[str, str]:
    pairs = [part.partition("=") for part in text.split(",")]
    if not all(key.strip() and equals for key, equals, _ in pairs):
        raise BadOption(f"{field.name}: write labels as key=value, key=value")
    return {key.strip(): value.strip() for key, _, value in pairs}
