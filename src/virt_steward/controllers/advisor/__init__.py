"""The advisor: shows what a tuning profile would change and how disruptive that is, and waits for an approval.

Not here: how a plan is drafted, executed or rolled back (`plans`).
"""
