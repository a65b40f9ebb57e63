"""The caller's name and rights, as the API server reviews them."""

from __future__ import annotations

from typing import TYPE_CHECKING

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


async def lacking(client: Client, verb: str, refs: Iterable[Ref]) -> tuple[Ref, ...]:
    """The objects on which the caller may not use this verb."""
    return tuple([ref for ref in refs if not await _may(client, verb, ref)])


async def _may(client: Client, verb: str, ref: Ref) -> bool:
    resource = {"verb": verb, "group": ref.kind.group, "resource": ref.kind.plural, "name": ref.key.name}
    attributes = {**resource, "namespace": ref.key.namespace}
    answer = await client.create({**ACCESS, "spec": {"resourceAttributes": attributes}})
    return bool(answer["status"]["allowed"])
