"""The caller's name and rights, as the API server reviews them, and the time at which it does."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from virt_steward.objects.wallclock import parse_rfc3339

if TYPE_CHECKING:
    from collections.abc import Iterable

    from virt_steward.kube.client import Client
    from virt_steward.objects.identity import Ref

REVIEW = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview", "metadata": {"name": ""}}
ACCESS = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "metadata": {"name": ""}}


async def name_of_caller(client: Client) -> str:
    """The username of the client's credentials."""
    answer = await client.create(REVIEW)
    return str(answer["status"]["userInfo"]["username"])


async def server_time(client: Client) -> datetime:
    """The time of the API server, which everybody may ask for: the clock of this machine may be wrong."""
    answer = await client.create(REVIEW)
    return parse_rfc3339(answer["metadata"].get("creationTimestamp") or "") or datetime.now(UTC)


async def lacking(client: Client, verb: str, refs: Iterable[Ref]) -> tuple[Ref, ...]:
    """The objects on which the caller may not use this verb."""
    return tuple([ref for ref in refs if not await _may(client, verb, ref)])


async def _may(client: Client, verb: str, ref: Ref) -> bool:
    resource = {"verb": verb, "group": ref.kind.group, "resource": ref.kind.plural, "name": ref.key.name}
    attributes = {**resource, "namespace": ref.key.namespace}
    answer = await client.create({**ACCESS, "spec": {"resourceAttributes": attributes}})
    return bool(answer["status"]["allowed"])
