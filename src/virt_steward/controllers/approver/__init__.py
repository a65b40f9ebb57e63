"""The approver: approves InstallPlans whose operator versions are pinned in Git, and no others.

Not here: how OLM resolves versions. A plan is approved as it is, or not at all.
"""
