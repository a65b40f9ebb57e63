"""Why a machine was placed where it is, noted on the machine together with the choice: events expire."""

from __future__ import annotations

from typing import TYPE_CHECKING

from virt_steward.controllers.placement.candidates import shown

if TYPE_CHECKING:
    from virt_steward.controllers.placement.observation import Machine
    from virt_steward.controllers.placement.verdicts import Chosen


def with_reason(chosen: Chosen) -> str:
    """With the cluster, so that it does not seem to speak of one that somebody names later."""
    return f"{chosen.cluster}: {shown(chosen.because)}"


def reason_on(machine: Machine) -> str:
    """Empty if the choice is not ours: somebody else has made it, or another one since."""
    cluster, separator, because = machine.wishes.because.partition(": ")
    ours = machine.metadata.managed_fields  # a copy of a machine has the note, but not from us
    return shown(because) if ours and separator and cluster == machine.wishes.config else ""
