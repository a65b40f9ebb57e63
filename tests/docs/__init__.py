"""The documentation: that it is complete, and that its examples work."""
