"""Governs everything around KubeVirt on a cluster, as controllers on one engine. See ARCHITECTURE.md."""

__version__ = "0.1.0"
