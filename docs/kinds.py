"""The page of our kinds, from the schemas of their CRDs."""  # noqa: INP001 - beside a script

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tables import NOTICE, table

from virt_steward.apis.crds import CRDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from virt_steward.apis.crd import Crd


def kinds() -> str:
    return f"{NOTICE}# The kinds\n\n" + "\n".join(_kind(crd) for crd in CRDS)


def _kind(crd: Crd) -> str:
    manifest = crd.manifest()["spec"]
    facts = [manifest["scope"], f"`{manifest['names']['plural']}.{manifest['group']}`"]
    if crd.short_names:
        facts.append(f"short: {', '.join(f'`{name}`' for name in crd.short_names)}")
    sections = [f"## {crd.kind.name}\n\n{crd.description}\n\n{' · '.join(facts)}\n"]
    for version in manifest["versions"]:
        schema = version["schema"]["openAPIV3Schema"]["properties"]
        rows = (row for part in ("spec", "status") for row in _fields(part, schema[part]))
        sections.append(f"### {version['name']}\n\n{table(('field', 'type', 'meaning'), rows)}")
    return "\n".join(sections)


def _fields(path: str, schema: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    for name, field in schema.get("properties", {}).items():
        yield f"`{path}.{name}`", _type(field), field.get("description", "")
        yield from _fields(f"{path}.{name}", field)
        yield from _fields(f"{path}.{name}[]", field.get("items", {}))


def _type(field: Mapping[str, Any]) -> str:
    if "enum" in field:
        return " or ".join(f"`{value}`" for value in field["enum"])
    name = "list" if field.get("type") == "array" else field.get("format") or field.get("type", "integer or string")
    return f"{name}, default `{_shown(field['default'])}`" if "default" in field else name


def _shown(default: object) -> str:
    return str(default).lower() if isinstance(default, bool) else str(default)
