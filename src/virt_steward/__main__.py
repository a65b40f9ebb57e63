"""`python -m virt_steward`."""

from virt_steward.cli.main import main

main()
