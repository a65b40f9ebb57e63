"""The real Operator Lifecycle Manager on a local control plane: built from its Go modules, started, and subscribed to.

Nothing of OLM itself is here: its programs and definitions come from its modules and stay in the user's cache.
"""
