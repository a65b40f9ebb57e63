"""One question to an API server that is starting: whether it answers a path with 200."""

import socket
import ssl
from dataclasses import dataclass, field

TIMEOUT_SECONDS = 2


@dataclass(frozen=True, slots=True)
class Probe:
    """Asks over TLS that is verified, with a bearer token."""

    port: int
    trust: ssl.SSLContext
    token: str = field(repr=False)

    def succeeds(self, path: str) -> bool:
        request = f"GET {path} HTTP/1.0\r\nHost: localhost\r\nAuthorization: Bearer {self.token}\r\n\r\n"
        try:
            with (
                socket.create_connection(("127.0.0.1", self.port), TIMEOUT_SECONDS) as plain,
                self.trust.wrap_socket(plain, server_hostname="127.0.0.1") as connection,
            ):
                connection.sendall(request.encode())
                status_line = connection.makefile("rb").readline()
        except OSError:  # refused, reset or silent: not yet
            return False
        return b" 200 " in status_line
