"""A simulated platform on a local control plane: small versions of the controllers around KubeVirt.

They write the same fields as the real controllers, in the same order and under the same field managers.
"""
