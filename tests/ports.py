"""Loopback ports for servers under test."""

import random
import socket

BELOW_CLIENTS = range(20_000, 32_000)
"""Linux gives ports from 32768 on to clients: one of those could be taken before its server is started."""


def a_free_port() -> int:
    for port in random.sample(BELOW_CLIENTS, 100):
        try:
            with socket.create_server(("127.0.0.1", port)):
                return port
        except OSError:
            continue
    raise AssertionError("100 ports are all in use")
