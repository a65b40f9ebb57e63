"""The demo of virt-steward: a local control plane, a simulated platform, and a tour. It is never part of the image."""
