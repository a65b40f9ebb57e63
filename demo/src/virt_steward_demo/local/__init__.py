"""A real control plane on this machine: build, start and stop it.

Nothing here connects to clusters that were not started here.
"""

from virt_steward.objects.errors import UserError


class LocalError(UserError):
    """The local control plane cannot do what was requested. The message is one line and says what to do next."""
