"""The advisor as a process of its own, and what may be said of a run that was cut off on the way."""

from collections.abc import Callable
from contextlib import AbstractContextManager

from tests.audit import Request
from tests.controllers.advisor.rig import AdvisorRig
from tests.controllers.approver.process import Process
from tests.eventually import eventually
from virt_steward.controllers.advisor.profiles.load_aware_rebalancing import DESCHEDULER, PSI
from virt_steward.objects.identity import key_of
from virt_steward.plans.preimage import CONTROLLER_REVISION

Start = Callable[..., AbstractContextManager[Process]]
Asked = Callable[[], list[Request]]

EXECUTION = (
    "advisor.record.before#3",
    "advisor.record.after#3",
    "advisor.status.before#3",
    "advisor.status.after#3",
    "advisor.preimage.before",
    "advisor.preimage.after",
    "advisor.item.before",
    "advisor.item.checked",
    "apply.send#3",
    "apply.sent#3",
    "advisor.item.after",
    "advisor.record.before#5",
    "advisor.record.after#5",
    "advisor.status.before#5",
    "advisor.status.after#5",
    "advisor.item.before#2",
    "advisor.item.checked#2",
    "advisor.item.after#2",
)
"""Points that are passed while two items are applied; what is counted before belongs to offers and drafts."""
DRAFTING = (
    "advisor.advertised",
    "advisor.drafted",
    "advisor.record.after",
    "advisor.status.before",
    "advisor.status.after",
)


def written(requests: list[Request], name: str) -> int:
    """How often an object was really written."""
    return sum(
        one.is_write and one.name == name and one.code in (200, 201) and "dryRun" not in one.uri for one in requests
    )


async def runs_through_a_kill(rig: AdvisorRig, start: Start, asked: Asked, point: str) -> None:
    """Kill the process at a point, start another one, and see that everything was done, and done once."""
    await rig.ask("Apply")
    with start(fault=f"{point}:kill") as first:
        assert await eventually(lambda: first.was_killed, within=40), first.log()[-3:]
    with start():
        assert await rig.reaches("Completed", within=40), await rig.status()
    requests = asked()
    assert [written(requests, ref.key.name) for ref in (PSI, DESCHEDULER)] == [1, 1]
    status = await rig.status()
    assert [item.state for item in status.items] == ["Completed", "Completed"]
    assert [one.outcome for one in status.history] == ["Completed"]
    records = [one for one in await rig.client.list(CONTROLLER_REVISION) if key_of(one).name == status.pre_image]
    assert [(kept["name"], kept["existed"]) for one in records for kept in one["data"]["items"]] == [
        ("enable-psi-metrics", False),
        ("configure-descheduler", False),
    ]
