"""Judges what controllers did to a cluster, from the audit log of its API server and a journal of who was reachable.

It imports nothing of the code that it judges: the rules are written down here a second time, from the documentation.
"""
