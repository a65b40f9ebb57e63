"""All settings of a running process, read once from the command line."""

from __future__ import annotations

from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from virt_steward.controllers.options import ControllerOptions
from virt_steward.objects.errors import UserError
from virt_steward.runtime.addresses import parse_address
from virt_steward.runtime.leader import LeaseTimes
from virt_steward.runtime.metrics_auth import OPENSHIFT_PROMETHEUS, MetricsAuth

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from virt_steward.objects.tls_parameters import TlsParameters
    from virt_steward.runtime.addresses import Address
    from virt_steward.runtime.probes import Addresses
    from virt_steward.runtime.serving_tls import CertificateFiles


CONSOLE = "console"
"""May be named where controllers are, though it is none."""


WITHOUT_SPEC_NOTIFY = ("autopilot", "placement")
"""Controllers whose objects name no endpoint, so that a setting does."""


class BadSetting(UserError):
    """An invalid setting. The message names it and what to write instead."""


@dataclass(frozen=True, slots=True)
class ConsoleSettings:
    address: Address
    """Where it is served."""
    external_url: str = ""
    """The URL for browsers, if there is a proxy in between."""
    proxies: tuple[IPv4Network | IPv6Network, ...] = ()
    """The networks from which the header with the viewer's token is accepted."""
    proxy_header: str = "X-Forwarded-Access-Token"
    """The name of that header."""
    owner_kubeconfig: str | None = None
    """The kubeconfig whose user signs in by one-time links; None: that of the process, unless it runs in a pod."""
    idle: float = 1800.0
    """Seconds of inactivity after which a viewer must sign in again."""
    rights_remembered: float = 30.0
    """Seconds for which the access reviews of a viewer are cached."""
    heartbeat: float = 10.0
    """Seconds between heartbeats on an unchanged page; access is checked then, too."""


@dataclass(frozen=True, slots=True)
class MetricsSettings:
    """How /metrics is served."""

    files: CertificateFiles | None = None
    """The certificate to serve it with; None: in plain HTTP."""
    auth: MetricsAuth = MetricsAuth.NONE
    """How those who read it prove who they are."""
    client_names: tuple[str, ...] = (OPENSHIFT_PROMETHEUS,)
    """The names in client certificates that are accepted."""
    tls: TlsParameters | None = None
    """Versions and ciphers; None: the platform's TLS profile where the autopilot runs, else Intermediate."""


@dataclass(frozen=True, slots=True)
class Settings:
    kubeconfig: str | None
    """Path of a kubeconfig; None: $KUBECONFIG, the home directory, or the pod's service account."""
    context: str | None
    """Context within the kubeconfig; None: its current one."""
    namespace: str
    """The namespace of the controllers and their leases."""
    leader_elect: bool
    """Whether replicas elect a leader."""
    lease: LeaseTimes
    """How long a lease lasts and how often it is renewed."""
    grace: float
    """Seconds that running reconciles get when the process stops."""
    addresses: Addresses
    """Where metrics, debug pages and probes are served."""
    metrics: MetricsSettings = field(default_factory=MetricsSettings)
    """How metrics are served."""
    watch_namespaces: tuple[str, ...] = ()
    """The namespaces to watch; none means the whole cluster."""
    notify_config: str | None = None
    """Path of a file with the endpoints that `spec.notify` and `--notify` may name."""
    notify: Mapping[str, str] = field(default_factory=dict)
    """The endpoint that is notified of what concerns people, by the name of a controller without spec.notify."""
    console_url: str = ""
    """Where people find the console, for links in notifications; empty: no links."""
    stand_by: bool = True
    """Whether a controller stands by while another implementation of it runs."""
    options: ControllerOptions = field(default_factory=ControllerOptions)
    """The options of each controller."""
    console: ConsoleSettings | None = None
    """None: no console."""


def lease_times(duration: int, retry: float) -> LeaseTimes:
    """Check that a leader can miss a renewal before its term ends."""
    times = LeaseTimes(duration, retry)
    if not 0 < 2 * retry <= times.usable:
        raise BadSetting(
            f"--lease-retry {retry:g} s is too long for --lease-duration {duration} s: "
            f"a leader stops after {times.usable:g} s without renewal; use {times.usable / 4:g} s"
        )
    return times


def console_link(url: str) -> str:
    """Check where people find the console; without a slash at the end."""
    parts = urlsplit(url)
    if url and (parts.scheme != "https" or not parts.netloc or parts.path not in ("", "/") or parts.query):
        raise BadSetting(f"--console-url {url}: write https://HOST, without a path")
    return url.rstrip("/")


def console_settings(address: str, external_url: str = "", proxies: Sequence[str] = ()) -> ConsoleSettings | None:
    """Check that no token is sent unencrypted: beyond loopback, a proxy with TLS is required."""
    listens = parse_address("--console-bind-address", address)
    if listens is None:
        return None
    link = console_link(external_url)
    if not listens.is_loopback and not external_url:
        raise BadSetting(
            f"--console-bind-address {address}: beyond loopback the console needs a proxy with TLS in front of it; "
            "name the address that browsers use by --console-url https://HOST, or serve it on 127.0.0.1"
        )
    try:
        networks = tuple(ip_network(one) for one in proxies)
    except ValueError as error:
        raise BadSetting(f"--console-proxies: {error}") from None
    return ConsoleSettings(listens, link, networks)


def watched(names: Sequence[str]) -> tuple[str, ...]:
    """Check that no name is empty: that would mean the whole cluster."""
    if not all(names):
        raise BadSetting("--watch-namespaces: a namespace name is empty; omit the option to watch the whole cluster")
    return tuple(dict.fromkeys(names))


def notify_endpoints(texts: Sequence[str]) -> dict[str, str]:
    """Read `CONTROLLER=ENDPOINT`, for the controllers whose objects have no spec.notify."""
    targets: dict[str, str] = {}
    for text in texts:
        controller, _, endpoint = text.partition("=")
        if controller not in WITHOUT_SPEC_NOTIFY or not endpoint:
            names = " or ".join(f"{name}=ENDPOINT" for name in WITHOUT_SPEC_NOTIFY)
            raise BadSetting(f"--notify {text}: write {names}; objects of other controllers have spec.notify")
        targets[controller] = endpoint
    return targets


def check_endpoints(notify: Mapping[str, str], endpoints: Collection[str]) -> None:
    """Check that --notify names endpoints of --notify-config."""
    for controller, endpoint in notify.items():
        if endpoint not in endpoints:
            known = ", ".join(sorted(endpoints)) or "no endpoints"
            raise BadSetting(f"--notify {controller}={endpoint}: endpoint not found; --notify-config defines {known}")


def names_in(text: str) -> tuple[str, ...]:
    """The names of a comma-separated list, with empty ones: those are refused later, since they could mean 'all'."""
    return tuple(name.strip() for name in text.split(","))


def chosen(known: Sequence[str], names: Sequence[str], what: str = "controller") -> tuple[str, ...]:
    """Check the names of controllers, or of something else; return each once, in the given order."""
    if unknown := [repr(name) for name in names if name not in known]:
        raise BadSetting(f"unknown {what} {', '.join(unknown)}; choose from {', '.join(known)}")
    return tuple(dict.fromkeys(names))
