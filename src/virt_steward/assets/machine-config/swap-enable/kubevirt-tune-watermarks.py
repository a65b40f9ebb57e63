#!/usr/bin/python3
"""Raises the kernel's low watermark above the kubelet's eviction threshold, so that a node swaps before it evicts."""

from __future__ import annotations

import json
import logging
import os
import re
import sys
from pathlib import Path

MIB = 1024 * 1024
DEFAULT_THRESHOLD = "100Mi"  # what the kubelet takes where nothing is configured
SMALLEST_MARGIN = 256 * MIB
LOWEST_SCALE, HIGHEST_SCALE = 10, 1000  # the kernel's default, and the most that it accepts
FRACTIONS = 10_000  # the kernel counts the scale in fractions of this

UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
QUANTITY = re.compile(r"(\d+(?:\.\d+)?)(%|[kMGT]|[KMGT]i)?")
EVICTION_BLOCK = re.compile(r"^evictionHard:[ \t]*\n((?:[ \t]+\S.*(?:\n|\Z))+)", re.MULTILINE)
AVAILABLE = re.compile(r"""^[ \t]+["']?memory\.available["']?:[ \t]*["']?([^"'\s#]+)""", re.MULTILINE)

log = logging.getLogger("tune-watermarks")


def main(root: Path) -> int:
    memory = total_memory(root)
    lowest, managed = zones(root)
    if not memory or not managed:
        log.warning("the memory of this node cannot be read, the watermarks stay as they are")
        return 0
    threshold = in_bytes(eviction_threshold(root), memory)
    target = threshold + max(SMALLEST_MARGIN, memory // 100)
    scale = clamped((target - lowest) * FRACTIONS // managed)
    knob = root / "proc/sys/vm/watermark_scale_factor"
    if not knob.exists():
        log.warning("%s is missing, the watermarks stay as they are", knob)
        return 0
    knob.write_text(f"{scale}\n")
    log.info("watermark_scale_factor is %d: low watermark near %d MiB of %d MiB", scale, target // MIB, memory // MIB)
    return 0


def clamped(scale: int) -> int:
    return max(LOWEST_SCALE, min(HIGHEST_SCALE, scale))


def total_memory(root: Path) -> int:
    found = re.search(r"^MemTotal:\s+(\d+) kB$", text_of(root / "proc/meminfo"), re.MULTILINE)
    return int(found[1]) * 1024 if found else 0


def zones(root: Path) -> tuple[int, int]:
    """Tell the minimum watermark and the managed memory of all zones together, in bytes."""
    text = text_of(root / "proc/zoneinfo")
    page = os.sysconf("SC_PAGE_SIZE")
    lowest, managed = (
        sum(int(pages) for pages in re.findall(rf"^\s+{name}\s+(\d+)$", text, re.MULTILINE))
        for name in ("min", "managed")
    )
    return lowest * page, managed * page


def eviction_threshold(root: Path) -> str:
    """Read the kubelet's configuration as the kubelet does: one file, then drop-ins by name, the last one wins."""
    files = [root / "etc/kubernetes/kubelet.conf", *sorted((root / "etc/openshift/kubelet.conf.d").glob("*.conf"))]
    told = [threshold for threshold in (threshold_in(text_of(path)) for path in files) if threshold]
    return told[-1] if told else DEFAULT_THRESHOLD


def threshold_in(text: str) -> str | None:
    """Find evictionHard's memory.available in JSON or in YAML, of which hosts have no parser."""
    try:
        return str(json.loads(text)["evictionHard"]["memory.available"])
    except (ValueError, KeyError, TypeError):
        block = EVICTION_BLOCK.search(text)
    found = AVAILABLE.search(block[1]) if block else None
    return found[1] if found else None


def in_bytes(quantity: str, memory: int) -> int:
    parts = QUANTITY.fullmatch(quantity)
    if not parts:
        log.warning("the eviction threshold %s is not understood, %s is taken", quantity, DEFAULT_THRESHOLD)
        return in_bytes(DEFAULT_THRESHOLD, memory)
    number, unit = float(parts[1]), parts[2] or ""
    return int(memory * number / 100 if unit == "%" else number * UNITS[unit])


def text_of(path: Path) -> str:
    try:
        return path.read_text()
    except OSError as error:
        log.warning("%s cannot be read: %s", path, error.strerror)
        return ""


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    sys.exit(main(Path(sys.argv[1] if sys.argv[1:] else "/")))
