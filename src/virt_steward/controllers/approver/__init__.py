"""The approver: installs the operator version that Git pins, never another.

Not here: how OLM resolves versions; a plan is approved as it is, or not at all.
"""
