"""Measures the engine on a real API server, as ratios to a bare request of the same run: `make bench`.

Nothing here passes or fails. Limits are tests (`tests/stress`).
"""
