"""What the engine costs on a real API server, as ratios to a bare request of the same run: `make bench`.

Nothing here passes or fails; limits that must hold are tests (`tests/stress`).
"""
