"""What the published CRDs let through, as regular expressions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from virt_steward.apis.schema import VALIDATIONS, schema_of

if TYPE_CHECKING:
    from virt_steward.apis.schema import ApiStruct


def published(struct: type[ApiStruct], field: str) -> re.Pattern[str]:
    """Return the pattern of a field's text, which must match as a whole."""
    rules = [validation["rule"] for validation in schema_of(struct)["properties"][field][VALIDATIONS]]
    (pattern,) = (found[1] for rule in rules if (found := re.fullmatch(r"self\.matches\(r'\^(.*)\$'\)", rule)))
    return re.compile(pattern)
