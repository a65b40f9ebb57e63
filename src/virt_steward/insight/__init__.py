"""Read-only questions that command line and console share, answered by the controllers' own rules.

Not here: rules of its own, or any way to write; an answer that differs from what a controller does is a bug.
"""
