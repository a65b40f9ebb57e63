"""Label selectors as objects have them: matchLabels and matchExpressions."""

from collections.abc import Mapping
from typing import Any

from virt_steward.objects.selectors import Selector, Term, requirement


def read_selector(data: Mapping[str, Any]) -> Selector:
    """An empty one matches everything. Raises BadSelector for an unknown operator."""
    labels = (Term(key, frozenset({value}), negated=False) for key, value in (data.get("matchLabels") or {}).items())
    listed = data.get("matchExpressions") or ()
    return Selector(
        (*labels, *(requirement(one["key"], one.get("operator"), one.get("values") or ()) for one in listed))
    )
