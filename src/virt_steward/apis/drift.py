"""Drift of one field, as statuses and events tell it: what it is, what it should be, who changed it and when."""

from typing import Annotated

from msgspec import Meta

from virt_steward.apis.meta import Time
from virt_steward.apis.schema import ApiStruct
from virt_steward.objects.wallclock import rfc3339

LONGEST_PATH = 512
LONGEST_VALUE = 80
LONGEST_MANAGERS = 256

ShortValue = Annotated[str, Meta(max_length=LONGEST_VALUE)]


class DriftEntry(ApiStruct, frozen=True):
    """A field whose live value is not the planned one. Secrets are masked, long values shortened."""

    path: Annotated[
        str,
        Meta(
            description="The field, as a JSON pointer that ignore-fields takes; empty if the object was deleted.",
            max_length=LONGEST_PATH,
        ),
    ]
    planned: Annotated[ShortValue | None, Meta(description="The planned value; absent if none is planned.")] = None
    live: Annotated[ShortValue | None, Meta(description="The live value; absent if it is not set.")] = None
    manager: Annotated[
        str,
        Meta(
            description="The other field managers that own the live value, the last writer first; empty if"
            " managedFields names none, as for a field that was removed.",
            max_length=LONGEST_MANAGERS,
        ),
    ] = ""
    time: Annotated[
        Time | None, Meta(description="When the last of them wrote fields of the object, by managedFields.")
    ] = None

    @property
    def is_deletion(self) -> bool:
        """Whether the whole object is gone."""
        return not self.path

    def sentence(self, wanted: str = "planned") -> str:
        """In words, such as `/spec/mode is Predictive, planned Automatic (changed by kubectl-edit, 2026-…)`."""
        if self.is_deletion:
            return "not found, it was deleted"
        live = "not set" if self.live is None else self.live or '""'
        planned = "not set" if self.planned is None else self.planned or '""'
        return f"{self.path} is {live}, {wanted} {planned} ({self._author()})"

    def _author(self) -> str:
        if self.manager:
            return f"changed by {self.manager}" + (f", {rfc3339(self.time)}" if self.time else "")
        return (
            "removed; managedFields does not say by whom"
            if self.live is None
            else "managedFields names no other manager"
        )
