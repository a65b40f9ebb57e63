"""A reviewable, resumable list of changes: drafted, fingerprinted, executed, waited for.

Not here: what is to be changed and when (controllers), and how one object is previewed or written (`ssa`).
"""
