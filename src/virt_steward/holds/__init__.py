"""What holds a change back besides a missing approval: freezes, windows and gates, and the order in which they count.

Not here: what the change is, and who approves it. Controllers ask these modules, and name the answer as their reason.
"""
