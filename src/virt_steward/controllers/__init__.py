"""The controllers, each a package of its own that imports no other.

Not here: anything that two of them share (runtime, ssa, plans, catalog).
"""

from virt_steward.controllers import approver
from virt_steward.runtime.controller import Definition

CONTROLLERS: tuple[Definition, ...] = (approver.DEFINITION,)
