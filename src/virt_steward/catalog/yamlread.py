"""Reads untrusted YAML: plain data only, dates stay text, no aliases, limited depth."""

from __future__ import annotations

from math import inf
from typing import Any

import yaml

try:
    from yaml import CSafeLoader as SafeLoader  # many times faster
except ImportError:  # a PyYAML that was built without libyaml
    from yaml import SafeLoader  # type: ignore[assignment]

DEEPEST = 100
_TIMESTAMP = "tag:yaml.org,2002:timestamp"


class BadYaml(ValueError):
    """The text is not valid YAML, or not allowed here."""


class _Loader(SafeLoader):
    """`2024-10-01` is text to an API server, and so it is here."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - the library's own attribute
        first: [(tag, pattern) for tag, pattern in resolvers if tag != _TIMESTAMP]
        for first, resolvers in SafeLoader.yaml_implicit_resolvers.items()
    }


def documents(text: str, most_nodes: float = inf) -> list[Any]:
    """Return all documents of the text that are not empty."""
    try:
        _refuse_bombs(text, most_nodes)
        return [document for document in yaml.load_all(text, _Loader) if document is not None]
    except (yaml.YAMLError, ValueError) as error:  # the latter for a number or a character that Python refuses
        raise BadYaml(" ".join(str(error).split())) from None
    except RecursionError:
        raise BadYaml("nested too deeply") from None


def document(text: str, most_nodes: float = inf) -> Any:
    """Return the one document of the text; None if it is empty."""
    found = documents(text, most_nodes)
    if len(found) > 1:
        raise BadYaml(f"expected one document, found {len(found)}")
    return found[0] if found else None


def _refuse_bombs(text: str, most_nodes: float) -> None:
    """Refuse deep nesting, for libyaml recurses in C, and aliases, for a few can expand to gigabytes."""
    depth = 0
    for number, event in enumerate(yaml.parse(text, _Loader)):
        if number > most_nodes:
            raise BadYaml(f"longer than {most_nodes} values")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            raise BadYaml("nested too deeply")
        if isinstance(event, yaml.AliasEvent):
            raise BadYaml("aliases are not allowed: write the value out")
