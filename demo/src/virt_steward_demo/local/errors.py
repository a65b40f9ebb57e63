"""What can go wrong with the local control plane."""

from virt_steward.objects.errors import UserError


class LocalError(UserError):
    """The local control plane cannot do what was asked; the message is one line that says what to do next."""
