"""Each method of installation, on a fresh control plane: the same objects and rights, with which the tour works."""
