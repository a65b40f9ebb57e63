"""What would change if virt-steward took over from the Go operators of a cluster, found without a write.

Each module has a frozen record of what was found, and a pure function from it to findings. No text is laid out here:
`cli/switch_check.py` does that.
"""
