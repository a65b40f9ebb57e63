"""Hours of the work of chaos on controllers that keep running: nothing that a process holds may grow.

`make soak` runs all of it, in parts. What is right stays the matter of tests/checker, and what people do that of
tests/chaos/workload.py; here is only what is measured meanwhile, and the test of its slope.
"""
