"""Loopback ports that nobody else can take."""

import socket


class ReservedPort:
    """A port held by a socket that never listens, so that a server can be killed and restarted on it.

    The server shares the port (SO_REUSEPORT), which the kernel allows to the same user only; while it is down,
    connections are refused.
    """

    def __init__(self) -> None:
        self._holder = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        self._holder.bind(("127.0.0.1", 0))
        self.number: int = self._holder.getsockname()[1]

    def release(self) -> None:
        self._holder.close()
