"""What people decide: approve, reject, roll back, replan, stop managing, release, resume, choose a cluster.

The command line and the console call the same functions. Each takes a client with the person's own credentials and
plain arguments, and gives back what came of it. Each writes who decided, when and why beside its change
(`signatures.py`). Not here: HTTP, forms and terminals, and what controllers decide.
"""
