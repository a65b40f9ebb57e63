"""What can go wrong with the local control plane."""

from virt_steward.objects.complaints import Complaint


class LocalError(Complaint):
    """The local control plane cannot do what was asked; the message is one line that says what to do next."""
