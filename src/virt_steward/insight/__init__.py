"""Read-only questions of the command line and the console, answered by the controllers' own code.

Not here: rules of its own, or writes. An answer that differs from what a controller does is a bug.
"""
