"""Addresses on which servers listen, as flags write them: `:8080`, `127.0.0.1:8081`, `[::1]:8081`, or `0` for off."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address

from virt_steward.objects.errors import UserError

HIGHEST_PORT = 65535


class BadAddress(UserError):
    """An address that is invalid, not allowed, or cannot be bound. The message names flag and address."""


@dataclass(frozen=True, slots=True)
class Address:
    flag: str
    """The flag that set it, for messages."""
    host: str
    """Empty: all interfaces."""
    port: int
    """0: any that is free."""

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        return is_loopback(self.host)

    def error(self, why: str) -> BadAddress:
        return BadAddress(f"{self.flag} {self}: {why}")


def is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:  # all interfaces, or a name that may resolve to anything
        return False


def parse_address(flag: str, text: str) -> Address | None:
    """The address; None if it is turned off."""
    if text == "0":
        return None
    host, colon, port = text.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    if not colon or (":" in host and not bracketed):
        raise BadAddress(f"{flag} {text}: write :8080, 127.0.0.1:8080, [::1]:8080, or 0 to turn it off")
    number = parse_port(port)
    if number is None:
        raise BadAddress(f"{flag} {text}: {port!r} is not a port number")
    return Address(flag, host[1:-1] if bracketed else host, number)


def parse_port(text: str) -> int | None:
    """The number of a port; None if it is none."""
    is_short = text.isascii() and text.isdigit() and len(text) <= len(str(HIGHEST_PORT))
    return int(text) if is_short and int(text) <= HIGHEST_PORT else None


def loopback_only(address: Address) -> Address:
    if not address.is_loopback:
        raise address.error(f"allowed on loopback only; use 127.0.0.1:{address.port}")
    return address
