"""All settings of a running process, read once from the command line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from virt_steward.objects.complaints import Complaint
from virt_steward.runtime.leader import LeaseTimes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from virt_steward.runtime.controller import Definition
    from virt_steward.runtime.probes import Addresses


class BadSetting(Complaint):
    """A setting that makes no sense: one line that names it and says what to write instead."""


@dataclass(frozen=True, slots=True)
class Settings:
    kubeconfig: str | None
    """Path of a kubeconfig; None: $KUBECONFIG, the home directory, or the pod's service account."""
    context: str | None
    """Context within the kubeconfig; None: its current one."""
    namespace: str
    """Where the controllers themselves live: their leases are here."""
    leader_elect: bool
    """Whether several replicas may run, of which one acts."""
    lease: LeaseTimes
    """How long a lease lasts and how often it is renewed."""
    grace: float
    """Seconds that running work gets when the process is told to stop."""
    addresses: Addresses
    """Where metrics, debug pages and probes are served."""
    watch_namespaces: tuple[str, ...] = ()
    """The only namespaces to look at; none means the whole cluster."""
    notify_config: str | None = None
    """Path of a file with the endpoints that `spec.notify` may name."""


def lease_times(duration: int, retry: float) -> LeaseTimes:
    """Check that a holder can miss a renewal or two before it has to stop."""
    times = LeaseTimes(duration, retry)
    if not 0 < 2 * retry <= times.usable:
        raise BadSetting(
            f"--lease-retry {retry:g} s is too long for --lease-duration {duration} s: "
            f"a leader stops after {times.usable:g} s without renewal; use {times.usable / 4:g} s"
        )
    return times


def watched(names: Sequence[str]) -> tuple[str, ...]:
    """Check that each namespace has a name: without one it would be the whole cluster."""
    if not all(names):
        raise BadSetting("--watch-namespaces: a namespace has a name; leave the option away to watch the whole cluster")
    return tuple(dict.fromkeys(names))


def chosen(known: Sequence[Definition], names: Sequence[str]) -> list[Definition]:
    """The named controllers, in the order in which they are named."""
    by_name = {definition.name: definition for definition in known}
    if not by_name:
        raise BadSetting("this version has no controllers")
    if unknown := [repr(name) for name in names if name not in by_name]:
        raise BadSetting(f"no controller is called {', '.join(unknown)}; there are: {', '.join(by_name)}")
    return [by_name[name] for name in dict.fromkeys(names)]
