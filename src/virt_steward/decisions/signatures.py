"""Who decides, when and why: written with every decision, beside the change that it makes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from virt_steward.kube.whoami import name_of_caller
from virt_steward.objects.decision_record import LONGEST_COMMENT, LONGEST_NAME
from virt_steward.objects.wallclock import rfc3339

if TYPE_CHECKING:
    from datetime import datetime

    from virt_steward.kube.client import Client
    from virt_steward.objects.decision_record import DecisionKeys, Verb


@dataclass(frozen=True, slots=True)
class Signature:
    """A person, and their reason. One signature serves for all decisions of a command."""

    user: str
    """As the API server knows them."""
    comment: str
    at: datetime

    def record(self, keys: DecisionKeys, verb: Verb, subject: str = "") -> dict[str, str | None]:
        """The annotations of a decision, for a merge patch: without a comment, that of an earlier one is removed."""
        return {
            keys.decision: f"{verb} {subject[:LONGEST_NAME]}".rstrip(),
            keys.by: self.user,
            keys.at: rfc3339(self.at),
            keys.comment: self.comment or None,
        }


async def sign(client: Client, comment: str, now: datetime) -> Signature:
    """Ask the API server for the caller's name: the admission policies accept no other."""
    return Signature(await name_of_caller(client), comment[:LONGEST_COMMENT], now)
