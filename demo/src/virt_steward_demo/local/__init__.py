"""A cluster on this machine: build, start and stop a real control plane.

Nothing here talks to clusters that were not started here.
"""

from virt_steward_demo.local.errors import LocalError

__all__ = ["LocalError"]
