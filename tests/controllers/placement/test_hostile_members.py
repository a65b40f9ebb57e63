"""A member cluster that misbehaves is reported, and costs the others nothing."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.fleet import PATIENCE, Members, a_fleet, a_machine_definition, a_vm
from tests.hostile import HOSTILE, MARK, HostileMember
from tests.runtime.clocks import ManualClock
from tests.widgets import install_crd
from virt_steward.controllers.placement.fleet import LONGEST_VERSION, ClusterReached
from virt_steward.controllers.placement.messages import INVALID_ANSWER, MISBEHAVIOUR_REMEDY
from virt_steward.controllers.placement.observation import Unreachable, VmFound
from virt_steward.controllers.placement.options import FleetTimeouts, SearchTimeouts
from virt_steward.controllers.placement.search import MOST_NAMES, Search
from virt_steward.controllers.placement.verdicts import PlacementReason
from virt_steward.kube.client import Client
from virt_steward_demo.local.controlplane import ControlPlane

SOON = 0.5
LATER = 100.0
SILENT, MISBEHAVES = PlacementReason.CLUSTERS_SILENT, PlacementReason.MISBEHAVES
REFUSED = PlacementReason.REFUSED
TIMED_OUT = f"unreachable: timed out after {SOON:g} s"

# What a search says of a cluster that behaves so; None: what it answers is valid.
FINDINGS: dict[str, tuple[PlacementReason, str] | None] = {
    "long version": None,
    "long error": (MISBEHAVES, "misbehaves: the answer is longer than 64 KiB"),
    "page of a million": (MISBEHAVES, "misbehaves: the answer is longer than 6 MiB"),
    "page of small items": (MISBEHAVES, "misbehaves: the answer has more than 20000 items"),
    "endless continue": (MISBEHAVES, "misbehaves: the list has more than 200 pages"),
    "endless body": (MISBEHAVES, "misbehaves: the answer is longer than 6 MiB"),
    "long discovery": (MISBEHAVES, "misbehaves: the answer has more than 20000 items"),
    "page of a login": (MISBEHAVES, INVALID_ANSWER),
    "JSON of a login": (MISBEHAVES, INVALID_ANSWER),
    "another type": (MISBEHAVES, INVALID_ANSWER),
    "nested": (MISBEHAVES, INVALID_ANSWER),
    "lone surrogate": (MISBEHAVES, INVALID_ANSWER),
    "no gzip": (SILENT, "the server closed the connection"),
    "unknown encoding": (SILENT, "the answer is not valid HTTP"),
    "no HTTP": (SILENT, "the answer is not valid HTTP"),
    "cut short": (SILENT, "the server closed the connection"),
    "redirect": (REFUSED, "request refused (HTTP 302)"),
    "invalid cookie": (SILENT, "unreachable: its API server fails"),
    "pause of no number": (SILENT, "too many requests (429)"),
    "pause of a day": (SILENT, "too many requests (429)"),
    "failure with a pause": (SILENT, "unreachable: its API server fails"),
    "silent": (SILENT, TIMED_OUT),
    "dripping": (SILENT, TIMED_OUT),
    "VMs of others": (MISBEHAVES, "misbehaves: it lists VMs that were not asked for"),
    "new versions": None,
}


@pytest.fixture
async def members(  # noqa: PLR0917 - each is a fixture
    request: pytest.FixtureRequest,
    control_plane: ControlPlane,
    admin: Client,
    namespace: str,
    clock: ManualClock,
    hostile_member: HostileMember,
) -> AsyncIterator[Members]:
    """The good cluster `good` has vm-web; the cluster `bad` behaves as the parameter says."""
    hostile_member.behaviour = getattr(request, "param", "silent")
    await install_crd(admin, a_machine_definition())
    await admin.create(a_vm(namespace, "vm-web"))
    limits = FleetTimeouts(timeout=SOON if hostile_member.behaviour in {"silent", "dripping"} else PATIENCE)
    async with a_fleet(control_plane, admin, namespace, clock=clock, limits=limits) as started:
        await started.join("good")
        await started.join("bad", server=hostile_member.server)
        yield started


@pytest.mark.parametrize("members", HOSTILE, indirect=True)
async def test_search_finds_vm_beside_hostile_member(
    members: Members, clock: ManualClock, hostile_member: HostileMember
) -> None:
    search = Search(members.fleet, SearchTimeouts(), clock)
    findings = await search.find(members.namespace, ("vm-web",), ["good", "bad"], since=clock.now())
    assert findings["good"] == VmFound()
    bad, expected = findings["bad"], FINDINGS[hostile_member.behaviour]
    if expected is None:
        assert not isinstance(bad, Unreachable)
        return
    assert isinstance(bad, Unreachable)
    reason, message = expected
    assert bad.reason is reason
    assert bad.message.startswith("cluster bad: ")
    assert message in bad.message
    assert bad.message.isprintable()
    assert len(bad.message) < 300
    assert MARK not in bad.message


def test_every_behaviour_has_its_finding() -> None:
    assert FINDINGS.keys() == HOSTILE.keys()


@pytest.mark.parametrize("members", ["long version"], indirect=True)
async def test_probe_reports_misbehaving_member(members: Members) -> None:
    message = f"cluster bad: misbehaves: the answer is longer than 64 KiB; {MISBEHAVIOUR_REMEDY}"
    assert await members.fleet.probe("bad") == Unreachable(message, MISBEHAVES)


@pytest.mark.parametrize("members", ["new versions"], indirect=True)
async def test_probe_bounds_the_version(members: Members) -> None:
    answer = await members.fleet.probe("bad")
    assert isinstance(answer, ClusterReached)
    assert answer.version.isprintable()
    assert len(answer.version) == LONGEST_VERSION


@pytest.mark.parametrize("members", ["pause of a day"], indirect=True)
async def test_pause_that_a_member_asks_for_is_bounded(members: Members) -> None:
    assert isinstance(await members.fleet.probe("bad"), Unreachable)
    assert members.fleet.retry_in("bad") == FleetTimeouts().longest_retry


async def test_hostile_member_costs_no_more_requests_of_good_ones(members: Members, clock: ManualClock) -> None:
    """Searches go on in the same number of turns: a cluster that failed is not waited for again and again."""
    search = Search(members.fleet, SearchTimeouts(apart=0, memory=0), clock)
    began = asyncio.get_running_loop().time()
    for _ in range(20):
        findings = await search.find(members.namespace, ("vm-web",), ["good", "bad"], since=clock.now())
        assert findings["good"] == VmFound()
    took = asyncio.get_running_loop().time() - began
    assert [one for one, _ in members.observed if one == "good"] == ["good"] * 20
    assert [one for one, _ in members.observed if one == "bad"] == ["bad"]
    assert took < 20 * SOON


@pytest.mark.parametrize("members", ["page of small items"], indirect=True)
async def test_misbehaving_member_is_asked_ever_less_though_its_probe_succeeds(
    members: Members, clock: ManualClock
) -> None:
    search = Search(members.fleet, SearchTimeouts(apart=0, memory=0), clock)
    pauses = []
    for _ in range(4):
        await search.find(members.namespace, ("vm-web",), ["bad"], since=clock.now())
        pauses.append(members.fleet.retry_in("bad"))
        await clock.advance(pauses[-1])
        assert isinstance(await members.fleet.probe("bad"), ClusterReached)
    assert pauses == [1, 2, 4, 8]
    await clock.advance(LATER)
    await search.find(members.namespace, ("vm-web",), ["bad"], since=clock.now())
    assert members.fleet.retry_in("bad") == 1, "it has behaved for long enough"


@pytest.mark.parametrize("error", [ValueError, RecursionError, OverflowError, UnicodeError, KeyError])
async def test_unexpected_error_of_a_question_is_a_failure_of_its_cluster(
    error: type[Exception], members: Members
) -> None:
    async def fails(_reader: object) -> None:
        raise error(MARK)

    assert await members.fleet.ask("good", fails) == Unreachable(f"cluster good: {INVALID_ANSWER}", MISBEHAVES)


class ManyVms:
    """A cluster that lists as many VMs as are allowed, in every namespace."""

    def __init__(self) -> None:
        self.asked = 0
        self._names = frozenset(f"vm-{number}" for number in range(MOST_NAMES // 2))

    def edition(self, _config: str) -> int:
        return 1

    async def ask(self, _config: str, _question: object) -> Any:
        self.asked += 1
        return self._names


async def test_search_remembers_a_bounded_number_of_names(clock: ManualClock) -> None:
    cluster = ManyVms()
    search = Search(cluster, SearchTimeouts(), clock)
    since = clock.now()
    for namespace in ("first", "second", "third"):
        assert await search.find(namespace, ("vm-1",), ["bad"], since=since) == {"bad": VmFound()}
        await clock.advance(1)
    for namespace, asked in (("third", 3), ("second", 3), ("first", 4)):
        assert await search.find(namespace, ("vm-1",), ["bad"], since=since) == {"bad": VmFound()}
        assert cluster.asked == asked
