"""The commands `virt-steward demo` and `virt-steward local`."""
