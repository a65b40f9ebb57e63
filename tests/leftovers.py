"""Objects that earlier tests have left, for tests about all objects of a kind."""

from contextlib import suppress

from virt_steward.kube.client import Client
from virt_steward.kube.errors import NotFound, NotServed
from virt_steward.objects.identity import Kind, Ref, key_of


async def delete_all(client: Client, *kinds: Kind) -> None:
    """Delete every object of these kinds, as far as the server serves them."""
    for kind in kinds:
        with suppress(NotServed):
            for obj in await client.list(kind):
                with suppress(NotFound):  # its owner was deleted
                    await client.delete(Ref(kind, key_of(obj)))
