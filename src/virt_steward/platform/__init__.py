"""What is known of the platform around KubeVirt: each kind has one projection and one watch that all controllers share.

Not here: what an asset or a profile wants of it.
"""
