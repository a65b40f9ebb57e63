"""Builds or installs the programs that tests need besides the control plane: `python -m tests.tools [stress]`."""

import os
import sys

from tests import helm, prometheus, promtool
from tests.console import browser
from tests.olm import lifecycle_manager


def main(*, stress: bool) -> int:
    found_promtool = promtool.find_or_build(os.environ)
    found = browser.find_or_install()
    if found is None:
        sys.stderr.write(f"{browser.NONE_TO_BE_HAD}\n")
        return 1
    sys.stdout.write(f"promtool {found_promtool}\nbrowser {found or 'of playwright'}\n")
    if stress:  # built here, since a test has a time limit
        sys.stdout.write(f"helm {helm.build()}\nOLM {lifecycle_manager.find_or_build(os.environ)}\n")
        sys.stdout.write(f"prometheus {prometheus.find_or_build(os.environ)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(stress="stress" in sys.argv[1:]))
