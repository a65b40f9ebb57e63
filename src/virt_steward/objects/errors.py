"""The base of all errors that a user can fix. The message is one line and says what to do."""


class UserError(Exception):
    """An error of input or environment, not a bug: commands print the message and exit."""
