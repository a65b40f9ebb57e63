"""Objects that earlier tests have left, for tests about all objects of a kind."""

from virt_steward.kube.client import Client
from virt_steward.kube.errors import NotFound
from virt_steward.objects.identity import Kind, Ref, key_of


async def delete_all(client: Client, *kinds: Kind) -> None:
    """Delete every object of kinds that the server serves."""
    for kind in kinds:
        for obj in await client.list(kind):
            try:
                await client.delete(Ref(kind, key_of(obj)))
            except NotFound:  # its owner was deleted
                continue
