"""The proxy of the environment, as client-go reads it: $HTTPS_PROXY, unless $NO_PROXY excludes the server."""

from __future__ import annotations

from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Mapping
    from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

PORTS = {"https": 443, "http": 80}


def proxy_variable(scheme: str, env: Mapping[str, str]) -> str:
    """The variable with the proxy for this scheme; empty if none is set."""
    name = f"{scheme}_proxy"
    return next((one for one in (name.upper(), name) if env.get(one)), "")


def is_excepted(server: str, env: Mapping[str, str]) -> bool:
    """Whether the server is reached without the proxy. Loopback addresses always are."""
    url = urlsplit(server)
    host, port = (url.hostname or "").rstrip("."), url.port or PORTS[url.scheme]
    address = _address(host)
    if host == "localhost" or (address and address.is_loopback):
        return True
    exceptions = env.get("NO_PROXY") or env.get("no_proxy") or ""
    return any(_matches(one.strip().lower(), host, address, port) for one in exceptions.split(",") if one.strip())


def _matches(exception: str, host: str, address: IPv4Address | IPv6Address | None, port: int) -> bool:
    """Whether an entry of $NO_PROXY matches: `*`, a network, an address, or a domain with its subdomains."""
    if exception == "*":
        return True
    if network := _network(exception):
        return address is not None and address in network
    name, _, only = exception.rpartition(":") if _has_port(exception) else (exception, "", "")
    if only and only != str(port):
        return False
    if address is not None:
        return _address(name.strip("[]")) == address
    domain = name.removeprefix("*").rstrip(".")
    return host.endswith(domain) if domain.startswith(".") else host == domain or host.endswith(f".{domain}")


def _has_port(exception: str) -> bool:
    return exception.rpartition(":")[2].isdecimal()


def _network(text: str) -> IPv4Network | IPv6Network | None:
    try:
        return ip_network(text, strict=False)
    except ValueError:
        return None


def _address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None
