"""Typed spec and status of our kinds, from which their CRDs are generated.

Not here: the kinds of others, which controllers read as projections, and anything that decides or does.
"""
