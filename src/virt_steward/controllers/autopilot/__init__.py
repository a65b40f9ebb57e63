"""The autopilot: keeps the platform at its best practice, and respects what its admins override.

Not here: what best practice is; the assets say that, and the catalog makes objects of them.
"""

from virt_steward.ssa.managers import AUTOPILOT

REPORTER = AUTOPILOT.name
"""How its events name it: as it also writes."""
