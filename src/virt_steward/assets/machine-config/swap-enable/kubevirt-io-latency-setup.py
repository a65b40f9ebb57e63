#!/usr/bin/python3
"""Gives the system a tighter disk latency target than pods, on every physical disk under swap and the root."""

from __future__ import annotations

import logging
import re
import subprocess
import sys
from pathlib import Path

TARGETS = (("system.slice", "5ms"), ("kubepods.slice", "50ms"))
SYSTEM_MOUNTS = ("/", "/sysroot", "/var")  # the root may be an overlay, whose disk is the one below /sysroot

log = logging.getLogger("io-latency-setup")


def main(root: Path) -> int:
    disks = sorted({disk for device in devices(root) for disk in physical_disks(root, device)})
    if not disks:
        log.warning("no physical disk found under swap or the root, no latency target is set")
        return 0
    failed = [unit for unit, target in TARGETS if not limited(root, unit, disks, target)]
    return 1 if failed else 0


def devices(root: Path) -> set[str]:
    """Tell the block devices below swap and the root by number, as in 8:3."""
    mounts = mounted(root)
    found = {mounts[mount] for mount in SYSTEM_MOUNTS if mount in mounts}
    for line in lines_of(root / "proc/swaps")[1:]:
        path, kind = line.split()[:2]
        number = number_of(root, path) if kind == "partition" else mounts.get(mount_of(path, mounts), "")
        found.add(number)
    return {number for number in found if number and (root / "sys/dev/block" / number).is_dir()}


def mounted(root: Path) -> dict[str, str]:
    """Tell which device is mounted where; of two on one mount point the later one is seen."""
    fields = (line.split() for line in lines_of(root / "proc/self/mountinfo"))
    return {parts[4]: parts[2] for parts in fields}


def mount_of(path: str, mounts: dict[str, str]) -> str:
    above = [mount for mount in mounts if path == mount or path.startswith(mount.rstrip("/") + "/")]
    return max(above, key=len, default="/")


def number_of(root: Path, device: str) -> str:
    name = re.sub(r"^/dev/", "", device).replace("/", "!")  # as sysfs writes names with a slash
    return "".join(lines_of(root / "sys/class/block" / name / "dev")[:1])


def physical_disks(root: Path, number: str) -> set[str]:
    return disks_below((root / "sys/dev/block" / number).resolve())


def disks_below(device: Path) -> set[str]:
    """Go from a mapped device or a partition down to whole disks: only those take a latency target."""
    lower = sorted((device / "slaves").glob("*"))
    if lower:
        return {disk for below in lower for disk in disks_below(below.resolve())}
    if (device / "partition").exists():
        return disks_below(device.parent)
    return {device.name.replace("!", "/")} if device.is_dir() else set()


def limited(root: Path, unit: str, disks: list[str], target: str) -> bool:
    settings = [f"IODeviceLatencyTargetSec=/dev/{disk} {target}" for disk in disks]
    command = [str(root / "usr/bin/systemctl"), "set-property", "--runtime", unit, *settings]
    try:
        done = subprocess.run(command, check=False, timeout=30)  # noqa: S603 - names come from sysfs, no shell is involved
    except (OSError, subprocess.TimeoutExpired) as error:
        log.error("%s: %s", unit, error)  # noqa: TRY400 - a journal line, the traceback says no more
        return False
    log.info("%s: %s on %s: %s", unit, target, ", ".join(disks), "failed" if done.returncode else "set")
    return done.returncode == 0


def lines_of(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError as error:
        log.warning("%s cannot be read: %s", path, error.strerror)
        return []


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    sys.exit(main(Path(sys.argv[1] if sys.argv[1:] else "/")))
