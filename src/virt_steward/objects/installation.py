"""Where virt-steward is installed unless an admin chooses otherwise."""

NAMESPACE = "virt-steward"
