"""The root of all errors that a person can put right: the text is one line, and says what to do."""


class UserError(Exception):
    """Not a bug of ours: commands print it and end."""
