"""The ConfigMap that freezes an installation, for the time of a block."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from virt_steward.holds.freezes import CONFIG_MAP_NAME
from virt_steward.kube.client import Client
from virt_steward.kube.errors import NotFound
from virt_steward.objects.corekinds import CONFIG_MAP
from virt_steward.objects.identity import Key, Ref


@asynccontextmanager
async def frozen(client: Client, namespace: str, **data: str) -> AsyncIterator[None]:
    """Freeze the installation of a namespace; `from_` is the field from."""
    settings = {name.removesuffix("_"): value for name, value in data.items()}
    metadata = {"name": CONFIG_MAP_NAME, "namespace": namespace}
    await client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": settings})
    try:
        yield
    finally:
        with suppress(NotFound):
            await client.delete(Ref(CONFIG_MAP, Key(namespace, CONFIG_MAP_NAME)))
