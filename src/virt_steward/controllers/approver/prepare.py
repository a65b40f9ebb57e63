"""Evaluates policies ahead of a decision, in small portions, so that no decision blocks the event loop."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from virt_steward.controllers.approver.policy import fault_of
from virt_steward.controllers.approver.scope import reaches
from virt_steward.controllers.approver.window_memory import WINDOWS

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from virt_steward.controllers.approver.observation import Approver
    from virt_steward.controllers.approver.observe import ApproverStores
    from virt_steward.controllers.approver.window_memory import WindowMemory


async def prepare_decision(stores: ApproverStores, namespace: str, now: datetime) -> None:
    """Evaluate the policies of all approvers that may cover plans of this namespace."""
    policies = stores.policy_namespaces
    await prepare([one for one in stores.approvers if reaches(one, namespace, policies)], now)


async def prepare(approvers: Iterable[Approver], now: datetime, memory: WindowMemory = WINDOWS) -> None:
    """Evaluate what is not remembered, and let others run after each piece. Costs nothing where all is."""
    for approver in approvers:
        policy = approver.spec.policy
        if policy is None:
            continue
        for window in (*policy.windows, *policy.freezes):
            if not memory.knows(window, now):
                memory.fault(window, now)
                await asyncio.sleep(0)
        misses = fault_of.cache_info().misses
        fault_of(policy)
        if fault_of.cache_info().misses > misses:
            await asyncio.sleep(0)
