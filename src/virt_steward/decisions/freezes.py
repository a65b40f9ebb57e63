"""How a person decides during a freeze: what they approve waits for its end, unless they override it and say why."""

from __future__ import annotations

from dataclasses import dataclass

from virt_steward.holds.freezes import NOT_FROZEN, FreezeState

WITHOUT_COMMENT = "A freeze is overridden only with a comment that says why"
HOW_TO_OVERRIDE = "to go on in spite of it, override the freeze, with a comment that says why"


@dataclass(frozen=True, slots=True)
class FreezeTerms:
    """The freeze of the installation as the person may know it, and whether they override it."""

    freeze: FreezeState = NOT_FROZEN
    overrides: bool = False


NO_FREEZE = FreezeTerms()


@dataclass(frozen=True, slots=True)
class OverrideKeys:
    """The annotations of one kind that record an override."""

    override: str
    by: str
    comment: str

    def annotations(self, what: str, user: str, comment: str) -> dict[str, str]:
        """Record that this very change goes on in spite of a freeze."""
        return {self.override: what, self.by: user, self.comment: comment}
