"""Another process leads, and what a former leader still shows."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp

from tests.eventually import eventually
from virt_steward.kube.client import Client
from virt_steward.objects.identity import Ref

HOUR = 3600


class Scraped:
    """The metrics of a process."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}/metrics"

    async def shows(self, *beginnings: str) -> bool:
        """Whether lines come to begin so, each of them."""
        return await eventually(lambda: self._shown(beginnings, is_shown=True))

    async def shows_no_more(self, *beginnings: str) -> bool:
        return await eventually(lambda: self._shown(beginnings, is_shown=False))

    async def _shown(self, beginnings: tuple[str, ...], *, is_shown: bool) -> bool:
        try:
            async with aiohttp.ClientSession() as session, session.get(self._url) as answer:
                lines = (await answer.text()).splitlines()
        except aiohttp.ClientConnectorError:  # it is starting
            return False
        return all(any(line.startswith(one) for line in lines) == is_shown for one in beginnings)


async def let_another_lead(client: Client, lease: Ref) -> None:
    """For so long that the process does not get its Lease back."""
    await client.merge_patch(lease, {"spec": {"holderIdentity": "another", "leaseDurationSeconds": HOUR}})


@asynccontextmanager
async def deleting(client: Client, lease: Ref) -> AsyncIterator[Ref]:
    """Delete the Lease at the end, so that later tests find none."""
    try:
        yield lease
    finally:
        await client.delete(lease)
