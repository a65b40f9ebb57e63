"""A cluster on this machine: the local control plane, a simulated platform, and the demo. Never part of the image."""
