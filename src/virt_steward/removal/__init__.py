"""The removal of virt-steward from a cluster: what it left, what is deleted or released, and what stays.

`found` is the record of what was observed, `decide` is pure, `observe` reads and `act` writes. Not here: what
controllers delete while they run.
"""
