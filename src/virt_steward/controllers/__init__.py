"""The controllers, each a package of its own that imports no other.

Not here: anything that two of them share (runtime, ssa, plans, catalog).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from virt_steward.controllers.autopilot import REPORTER as AUTOPILOT

if TYPE_CHECKING:
    from virt_steward.controllers.options import ControllerOptions
    from virt_steward.runtime.controller import ControllerDefinition

NAMES = ("advisor", "autopilot", "approver", "placement")
REPORTERS = {name: name for name in NAMES} | {"autopilot": AUTOPILOT}
"""How the events of each name it."""


def definition(name: str, options: ControllerOptions) -> ControllerDefinition:
    """One controller, as an installation wants it. It is imported only here: who runs one does not pay for four."""
    match name:
        case "advisor":
            from virt_steward.controllers.advisor import definition as advisor  # noqa: PLC0415 - see above

            return advisor.definition(options.advisor)
        case "autopilot":
            from virt_steward.controllers.autopilot import definition as autopilot  # noqa: PLC0415 - see above

            return autopilot.definition(options.autopilot)
        case "approver":
            from virt_steward.controllers.approver import definition as approver  # noqa: PLC0415 - see above

            return approver.definition(options.approver)
        case "placement":
            from virt_steward.controllers.placement import definition as placement  # noqa: PLC0415 - see above

            return placement.definition(options.placement)
    raise LookupError(name)
