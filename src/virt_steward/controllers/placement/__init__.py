"""The placement: chooses the cluster of a Machine, and records why.

Not here: creating or changing VMs; another operator does that on the recorded cluster.
"""
