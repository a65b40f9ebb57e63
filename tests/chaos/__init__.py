"""Chaos: a seeded workload on all controllers, a seeded list of faults, and the checker as the judge.

`python -m tests.chaos --seed 7` runs one seed, `make chaos` many. Nothing here decides what is right: that is
`tests/checker`. Time passes for real, so the same seed gives the same workload and faults, not the same interleaving.
"""
