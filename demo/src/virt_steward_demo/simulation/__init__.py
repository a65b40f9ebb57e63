"""A simulated platform on a local control plane: stand-ins for the systems around KubeVirt, for demo and tests.

They write what those systems write, in their order and under their names. Nothing here is needed on a real cluster.
"""
