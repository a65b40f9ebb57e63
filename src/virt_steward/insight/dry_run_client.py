"""A client that tries writes and makes none."""

from __future__ import annotations

from virt_steward.kube.client import Caller, Client
from virt_steward.kube.errors import NotLeading


class DryRunClient:
    """Permits no write; dry runs need no permit."""

    def remaining(self) -> float:
        raise NotLeading("a question changes nothing")


def dry_run_client(client: Client) -> Client:
    return Client(client.connection, client.discovery, Caller(permit=DryRunClient()))
