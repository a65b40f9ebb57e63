"""The baseline: a GET and a merge PATCH of a small ConfigMap, sent by the connection alone."""

from itertools import count
from typing import Any, Self

from virt_steward.kube.client import MERGE_PATCH, Client
from virt_steward.kube.connection import Connection, Request

NAMESPACE = "default"
NAME = "bench-bare"
PATH = f"/api/v1/namespaces/{NAMESPACE}/configmaps/{NAME}"

GET = "bare GET"
PATCH = "bare PATCH"
REPOSE = 0.05
"""Seconds before a bare request: on a busy machine, a process that has just used the CPU would wait longer for it."""


class Bare:
    """Requests sent by the connection alone."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._numbers = count()

    @classmethod
    async def on(cls, client: Client) -> Self:
        await client.create(a_config_map(NAME))
        return cls(client.connection)

    async def get(self) -> None:
        await self._connection.send(Request("get", "GET", PATH, what=GET))

    async def patch(self) -> None:
        """Change the object each time: a patch without a change is not stored and costs less."""
        body = b'{"data":{"number":"%d"}}' % next(self._numbers)
        headers = {"Content-Type": MERGE_PATCH}
        await self._connection.send(Request("patch", "PATCH", PATH, what=PATCH, headers=headers, body=body))


def a_config_map(name: str, **data: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "data": data,
    }
