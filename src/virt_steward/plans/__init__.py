"""A reviewable, resumable list of changes: drafted by dry run, hashed, executed item by item, waited for, rolled back.

Not here: what is to be changed and when, and on whose behalf (controllers pass a `PlanOwner`), and how one object is
previewed or written (`ssa`).
"""
