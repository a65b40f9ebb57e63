"""What can go wrong with the local control plane."""


class LocalError(Exception):
    """The local control plane cannot do what was asked; the message is one line that says what to do next."""
