"""Kubernetes objects as plain data. Pure functions and frozen records: no I/O, no clock, no randomness, no asyncio."""
