"""Objects as YAML for people: a fixed order of keys, multi-line text as blocks, no folding, no anchors."""

from __future__ import annotations

from typing import Any

import yaml

try:
    from yaml import CSafeDumper as SafeDumper  # many times faster
except ImportError:  # a PyYAML that was built without libyaml
    from yaml import SafeDumper  # type: ignore[assignment]

_FIRST = ("apiVersion", "kind", "name", "namespace", "metadata", "spec")
_RANK = {name: rank for rank, name in enumerate(_FIRST)}
_NEVER_FOLD = 2**31 - 1


class _Dumper(SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - the library passes it
        return True  # objects share unchanged parts, which would become anchors


def _text(dumper: SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


def yaml_text(obj: Any) -> str:
    """Write identity first, then spec, then the rest by name, at every level."""
    return yaml.dump(_ordered(obj), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_NEVER_FOLD)


def _ordered(value: Any) -> Any:
    match value:
        case dict():
            return {name: _ordered(value[name]) for name in sorted(value, key=_order)}
        case list():
            return [_ordered(item) for item in value]
    return value


def _order(name: str) -> tuple[int, str]:
    return _RANK.get(name, len(_FIRST)), name
