"""Options about what holds changes back: the file of gates, and the override of a freeze."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from virt_steward.decisions.freezes import FreezeTerms
from virt_steward.insight.freeze import freeze_now
from virt_steward.settings import BadSetting

if TYPE_CHECKING:
    from virt_steward.kube.client import Reader

GatesOption = Annotated[
    str | None,
    typer.Option(
        "--gates", metavar="FILE", help="Path of a file with the gates that objects may name, besides ready-made ones."
    ),
]
OverrideOption = Annotated[
    bool,
    typer.Option(
        "--override-freeze", help="Begin in spite of a freeze; needs --comment, and the right to override-freeze."
    ),
]


@dataclass(frozen=True, slots=True)
class FreezeRequest:
    """Whether a person overrides the freeze of the installation in a namespace."""

    namespace: str
    overrides: bool

    async def terms(self, reader: Reader, controller: str) -> FreezeTerms:
        """Under which terms they decide, as far as they may read the freeze."""
        return FreezeTerms(await freeze_now(reader, self.namespace, controller, datetime.now(UTC)), self.overrides)


def freeze_request(namespace: str, comment: str, *, override: bool) -> FreezeRequest:
    """Raises BadSetting if a freeze is overridden without a comment."""
    if override and not comment.strip():
        raise BadSetting("--override-freeze: add --comment that says why")
    return FreezeRequest(namespace, override)
