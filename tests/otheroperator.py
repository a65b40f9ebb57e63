"""Another implementation of a controller, as far as it matters: it renews a Lease."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from virt_steward.kube.client import Client
from virt_steward.kube.errors import NotFound
from virt_steward.objects.identity import Key, Ref
from virt_steward.objects.wallclock import rfc3339_micro
from virt_steward.runtime.access import LEASE
from virt_steward.runtime.clock import SystemClock


class OtherOperator:
    """Another implementation: it renews its Lease, in a namespace of its own."""

    def __init__(self, admin: Client, key: Key) -> None:
        self._admin = admin
        self._key = key

    async def renew(self, holder: str = "go-1", duration: int = 2) -> None:
        spec = {"holderIdentity": holder, "leaseDurationSeconds": duration}
        spec["renewTime"] = rfc3339_micro(SystemClock().utc())
        try:
            await self._admin.merge_patch(Ref(LEASE, self._key), {"spec": spec})
        except NotFound:
            metadata = {"name": self._key.name, "namespace": self._key.namespace}
            await self._admin.create(
                {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}
            )

    async def delete(self) -> None:
        await self._admin.delete(Ref(LEASE, self._key))

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        await self.renew()
        renewing = asyncio.create_task(self._renew_for_ever())
        try:
            yield
        finally:
            renewing.cancel()
            await asyncio.gather(renewing, return_exceptions=True)

    async def _renew_for_ever(self) -> None:
        while True:
            await asyncio.sleep(0.3)
            await self.renew()
