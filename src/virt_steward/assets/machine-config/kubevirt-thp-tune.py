#!/usr/bin/python3
"""Gives huge pages to those who ask for them, as guests do, and lets khugepaged scan in long, rare strides.

khugepaged makes huge pages of memory that is mostly empty, except where the kernel merges pages of zeros: there it
would fill with zeros again what was just merged.
"""

from __future__ import annotations

import logging
import re
import sys
from pathlib import Path

PAGES_TO_SCAN = 130_000
SLEEP, SLEEP_BY_GIB = 1000, 64_000  # milliseconds; more memory, shorter sleep
EMPTY_PAGES, NO_EMPTY_PAGES = 511, 0  # of the 512 that make a huge page

log = logging.getLogger("thp-tune")


def main(root: Path) -> int:
    knobs = root / "sys/kernel/mm/transparent_hugepage"
    wanted = (
        (knobs / "enabled", "madvise"),
        (knobs / "defrag", "madvise"),
        (knobs / "shmem_enabled", "advise"),
        (knobs / "shrink_underused", "0"),
        (knobs / "khugepaged/pages_to_scan", str(PAGES_TO_SCAN)),
        (knobs / "khugepaged/scan_sleep_millisecs", str(sleep_for(memory_in_gib(root)))),
        (knobs / "khugepaged/max_ptes_none", str(NO_EMPTY_PAGES if merges_pages(root) else EMPTY_PAGES)),
    )
    for knob, value in wanted:
        if not knob.exists():
            log.warning("%s is missing and left alone", knob)
            continue
        knob.write_text(f"{value}\n")
        log.info("%s is %s", knob, value)
    return 0


def merges_pages(root: Path) -> bool:
    run = root / "sys/kernel/mm/ksm/run"
    return run.exists() and run.read_text().strip() == "1"


def sleep_for(gib: float) -> int:
    return int(SLEEP + SLEEP_BY_GIB / gib)


def memory_in_gib(root: Path) -> float:
    found = re.search(r"^MemTotal:\s+(\d+) kB$", (root / "proc/meminfo").read_text(), re.MULTILINE)
    return max(1.0, int(found[1]) / 2**20) if found else 1.0


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    sys.exit(main(Path(sys.argv[1] if sys.argv[1:] else "/")))
