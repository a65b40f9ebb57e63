#!/usr/bin/python3
"""Lets the kernel merge pages of zeros, and only those, at a pace that suits the memory of the node.

While it merges, khugepaged may not fill empty pages of a huge page with zeros: it would undo the merge.
"""

from __future__ import annotations

import logging
import re
import sys
from pathlib import Path

PAGES_TO_SCAN = 1000
SHORTEST_SLEEP, LONGEST_SLEEP = 10, 50  # milliseconds between two scans
SLEEP_BY_GIB = 25_600  # more memory, shorter sleep
EMPTY_PAGES, NO_EMPTY_PAGES = 511, 0  # of the 512 that make a huge page

log = logging.getLogger("ksm-tune")


def main(root: Path) -> int:
    knobs = root / "sys/kernel/mm/ksm"
    zeros_only = knobs / "redhat_only_zero_pages"
    if not zeros_only.exists():  # merging other pages would let guests learn about each other's memory
        log.warning("%s is missing: this kernel cannot merge zero pages only, so nothing is merged", zeros_only)
        limit_huge_pages(root)
        return 0
    memory = memory_in_gib(root)
    wanted = (
        (zeros_only, 1),
        (knobs / "pages_to_scan", PAGES_TO_SCAN),
        (knobs / "sleep_millisecs", sleep_for(memory)),
        (knobs / "run", 1),  # last: nothing may be merged before the limit to zeros is in force
    )
    for knob, value in wanted:
        knob.write_text(f"{value}\n")
        log.info("%s is %d", knob, value)
    limit_huge_pages(root)
    return 0


def limit_huge_pages(root: Path) -> None:
    run = root / "sys/kernel/mm/ksm/run"
    knob = root / "sys/kernel/mm/transparent_hugepage/khugepaged/max_ptes_none"
    if not knob.exists():
        log.warning("%s is missing and left alone", knob)
        return
    merges = run.exists() and run.read_text().strip() == "1"
    value = NO_EMPTY_PAGES if merges else EMPTY_PAGES
    knob.write_text(f"{value}\n")
    log.info("%s is %d", knob, value)


def sleep_for(gib: float) -> int:
    return int(max(SHORTEST_SLEEP, min(LONGEST_SLEEP, SLEEP_BY_GIB / gib)))


def memory_in_gib(root: Path) -> float:
    found = re.search(r"^MemTotal:\s+(\d+) kB$", (root / "proc/meminfo").read_text(), re.MULTILINE)
    return max(1.0, int(found[1]) / 2**20) if found else 1.0


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    sys.exit(main(Path(sys.argv[1] if sys.argv[1:] else "/")))
