"""Builds or installs the programs that tests need besides the control plane: `python -m tests.tools`."""

import os
import sys

from tests.console import browser
from tests.promtool import find_or_build


def main() -> int:
    promtool = find_or_build(os.environ)
    found = browser.find_or_install()
    if found is None:
        sys.stderr.write(f"{browser.NONE_TO_BE_HAD}\n")
        return 1
    sys.stdout.write(f"promtool {promtool}\nbrowser {found or 'of playwright'}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
