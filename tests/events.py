"""Events of the controllers on the real API server."""

from virt_steward.kube.client import Client, Selection
from virt_steward.kube.events import EVENT
from virt_steward.objects.identity import Ref


async def has_event(client: Client, regarding: Ref, note: str) -> bool:
    """Whether there is an event on this object whose note contains the text."""
    events = await client.list(EVENT, Selection(regarding.key.namespace or "default"))
    about = (regarding.kind.name, regarding.key.name)
    return any((one["regarding"]["kind"], one["regarding"]["name"]) == about and note in one["note"] for one in events)
