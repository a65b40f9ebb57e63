"""The front door: everything on this machine, and stories that show what it is for.

Not here: how any of it works; a story does what an admin would do, and looks where an admin would look.
"""
