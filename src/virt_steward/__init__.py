"""Governs everything around KubeVirt on a cluster, as controllers on one engine. See ARCHITECTURE.md."""

__version__ = "0.2.0"
