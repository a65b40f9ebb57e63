#!/usr/bin/python3
"""Shuts the guests of a node down when the node itself is about to go down.

It runs inside of systemd-inhibit, whose delay lock holds the shutdown up until this process ends.
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

AT_ONCE = 32
PATIENCE = 120.0  # seconds for all guests together; logind ends the delay after 150
ANSWER_WITHIN = 20.0  # seconds for one command
LOOK_AGAIN_AFTER = 1.0

LIBVIRT = "qemu+unix:///session?socket=/var/run/libvirt/virtqemud-sock"
SIGNAL = "type='signal',interface='org.freedesktop.login1.Manager',member='PrepareForShutdown'"
LOGIND = ("org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager")

log = logging.getLogger("vm-drain")


def main(root: Path) -> int:
    host = Host(root)
    if not going_down(host):
        log.error("the system bus is gone, so a shutdown would not be noticed")
        return 1
    shut_down_guests(host, deadline=time.monotonic() + PATIENCE)
    return 0


class Host:
    """The programs of this node."""

    def __init__(self, root: Path) -> None:
        self._programs = root / "usr/bin"

    def ask(self, program: str, *arguments: str) -> str | None:
        """Run a program and give its output; None if it failed or did not answer."""
        command = [str(self._programs / program), *arguments]
        try:
            done = subprocess.run(  # noqa: S603 - our own arguments, no shell is involved
                command, check=False, capture_output=True, text=True, timeout=ANSWER_WITHIN
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            log.warning("%s: %s", program, error)
            return None
        if done.returncode:
            log.warning("%s: %s", " ".join((program, *arguments)), done.stderr.strip())
            return None
        return done.stdout

    def follow(self, program: str, *arguments: str) -> subprocess.Popen[str]:
        command = [str(self._programs / program), *arguments]
        return subprocess.Popen(  # noqa: S603 - our own arguments, no shell is involved
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )


def going_down(host: Host) -> bool:
    """Wait until logind says that the node goes down; False if the bus can no longer be heard."""
    with host.follow("busctl", "--system", "--json=short", f"--match={SIGNAL}", "monitor") as bus:
        for line in bus.stdout or ():
            if announces_shutdown(line) or (not is_message(line) and already_going_down(host)):
                bus.terminate()
                return True
    return False


def announces_shutdown(line: str) -> bool:
    try:
        message = json.loads(line)
        return bool(message["member"] == "PrepareForShutdown" and message["payload"]["data"] == [True])
    except (ValueError, KeyError, TypeError):
        return False


def is_message(line: str) -> bool:
    return line.startswith("{")


def already_going_down(host: Host) -> bool:
    """Ask once the bus is being followed: a shutdown that began just before it would go unheard."""
    return "true" in (host.ask("busctl", "--system", "get-property", *LOGIND, "PreparingForShutdown") or "")


def shut_down_guests(host: Host, deadline: float) -> None:
    launchers = launchers_on(host)
    while launchers is None and time.monotonic() < deadline:
        time.sleep(LOOK_AGAIN_AFTER)
        launchers = launchers_on(host)
    if launchers is None:
        log.error("the guests of this node could not be listed, none is shut down")
        return
    log.info("the node goes down, %d guests are asked to shut down", len(launchers))
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for launcher in launchers:
            pool.submit(ask_to_shut_down, host, launcher)
    left = launchers_left(host, launchers, deadline)
    log.info("%d of %d guests have shut down", len(launchers) - len(left), len(launchers))


def launchers_on(host: Host) -> frozenset[str] | None:
    """Tell the containers of virt-launcher pods in which guests run; None if that cannot be told now."""
    pods = host.ask("crictl", "pods", "--label=kubevirt.io=virt-launcher", "--state=ready", "--quiet")
    running = host.ask("crictl", "ps", "--name=^compute$", "--state=running", "--output=json")
    if pods is None or running is None:
        return None
    try:
        containers = json.loads(running)["containers"]
        return frozenset(container["id"] for container in containers if container["podSandboxId"] in pods.split())
    except (ValueError, KeyError, TypeError) as error:
        log.warning("crictl gave no list of containers: %r", error)
        return None


def ask_to_shut_down(host: Host, launcher: str) -> None:
    for guest in (virsh(host, launcher, "list", "--name", "--state-running") or "").split():
        virsh(host, launcher, "shutdown", guest)


def virsh(host: Host, launcher: str, *arguments: str) -> str | None:
    return host.ask("crictl", "exec", launcher, "virsh", f"--connect={LIBVIRT}", *arguments)


def launchers_left(host: Host, launchers: frozenset[str], deadline: float) -> frozenset[str]:
    """Wait for the launchers, which end with their guests, and tell those that did not."""
    left = launchers
    while left and time.monotonic() < deadline:
        time.sleep(LOOK_AGAIN_AFTER)
        running = launchers_on(host)
        left = left if running is None else left & running  # a failed look is no sign of an end
    return left


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    sys.exit(main(Path(sys.argv[1] if sys.argv[1:] else "/")))
