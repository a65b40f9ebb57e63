"""The only door to API servers: configuration, connections, requests, discovery, watches, events.

Not here: what to read or write and why (controllers), field ownership (ssa), caches and queues (runtime).
"""
