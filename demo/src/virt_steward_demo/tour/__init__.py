"""The demo: all controllers on this machine, and a guided tour with checks.

A walkthrough does what an admin would do, with the admin's rights, and reads what an admin would read. It never calls
into a controller.
"""
