"""The advisor: shows what a tuning would change and what that costs, and does nothing before somebody says so.

Not here: how a plan is drafted, executed or waited for (`plans`).
"""
