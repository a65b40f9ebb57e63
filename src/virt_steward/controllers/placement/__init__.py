"""The placement: which cluster runs a machine, and why.

Not here: making or changing virtual machines; a choice is recorded, and whoever runs machines follows it.
"""
