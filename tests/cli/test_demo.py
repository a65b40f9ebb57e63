"""The front door: what a newcomer starts first, and the tour that says whether all of it works."""

import os
import re
import shlex
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.cli.commands import steward
from tests.cli.demos import a_demo
from tests.cli.kubectl import carry_out, commands_in, object_of
from tests.console.rig import Browser
from tests.eventually import eventually, eventually_blocking
from tests.local.test_processes import is_running
from virt_steward.apis.installplanapprover import INSTALL_PLAN_APPROVER
from virt_steward.app import connected
from virt_steward.kube.client import Client, Object
from virt_steward.kube.errors import NotFound
from virt_steward.objects.identity import Key, Ref, ref_of
from virt_steward.packaging.parts import POLICIES
from virt_steward.runtime.access import LEASE
from virt_steward_demo.local.processes import Child
from virt_steward_demo.tour.sample_objects import APPROVER, OPERATOR, PINNED

LINK = re.compile(r"(http://127\.0\.0\.1:\d+)(/sign-in/link\?code=\S+) \(works once\)")
PROGRAMS = {"etcd": 3, "kube-apiserver": 3, "kube-controller-manager": 1}
"""One cluster for all, and two small ones for machines."""


class SharedDemo:
    """One demo for all tests, and another one after the test that ends it."""

    def __init__(self, stack: ExitStack, tmp_path_factory: pytest.TempPathFactory) -> None:
        self._stack = stack
        self._folders = tmp_path_factory
        self._running: Child | None = None

    def running(self) -> Child:
        if self._running is None or not self._running.alive:
            self._running = self._stack.enter_context(a_demo(self._folders.mktemp("demo") / "shared"))
        return self._running


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedDemo]:
    with ExitStack() as stack:
        yield SharedDemo(stack, tmp_path_factory)


@pytest.fixture
def demo(shared: SharedDemo) -> Child:
    return shared.running()


async def test_each_link_opens_the_console_once_and_the_next_one_is_printed(demo: Child) -> None:
    for number in (1, 2):
        origin, path = await _link(demo, number)
        async with Browser(origin) as browser, Browser(origin) as late:
            assert "Inbox" in (await browser.get(path)).text
            assert (await late.get(path)).status == 401


def test_link_to_the_console_is_the_last_line(demo: Child) -> None:
    """However much is printed before, and whatever is logged after."""
    assert eventually_blocking(lambda: bool(LINK.search(demo.log.read_text())))
    assert LINK.search(demo.log.read_text().splitlines()[-1])


async def test_demo_has_the_admission_policies(newcomer: Client) -> None:
    for policy in POLICIES:
        assert await newcomer.get(ref_of(policy))


async def test_second_advisor_stands_by(demo: Child, newcomer: Client, tmp_path: Path) -> None:
    """It is what a how-to has people start. The demo holds the Lease, so that there is one writer."""
    lease = Ref(LEASE, Key("virt-steward", "virt-steward-advisor"))
    assert await _comes_to_be(newcomer, lease, lambda now: bool(now["spec"]["holderIdentity"]))
    argv = [sys.executable, "-m", "virt_steward", "run", "--controllers", "advisor", "--log-format", "json"]
    ports = ("--metrics-bind-address", "0", "--health-probe-bind-address", "0")
    second = Child(
        [*argv, *ports], log=tmp_path / "second.log", env={**os.environ, "KUBECONFIG": str(_kubeconfig(demo))}
    )
    try:
        assert await eventually(lambda: '"waiting for the lease"' in second.log.read_text()), second.log.read_text()
    finally:
        second.kill()
    assert '"leading"' not in second.log.read_text()


async def _link(demo: Child, number: int) -> tuple[str, str]:
    """The newest, when so many were printed."""
    assert await eventually(lambda: len(LINK.findall(demo.log.read_text())) == number), demo.log.read_text()
    origin, path = LINK.findall(demo.log.read_text())[-1]
    return origin, path


@pytest.fixture
async def newcomer(demo: Child) -> AsyncIterator[Client]:
    """Has the kubeconfig that the demo names."""
    async with connected(str(_kubeconfig(demo)), None) as client:
        yield client


def _kubeconfig(demo: Child) -> Path:
    (named,) = re.findall(r"export KUBECONFIG=(.*)", demo.log.read_text())
    return Path(*shlex.split(named))


async def test_the_first_thing_to_try_drafts_a_plan_that_can_be_looked_at(demo: Child, newcomer: Client) -> None:
    said = demo.log.read_text()
    draft, _, _ = commands_in(said)
    config = await object_of(newcomer, draft)
    assert await _comes_to_be(newcomer, config, _is_there)
    await carry_out(newcomer, draft)
    assert await _comes_to_be(newcomer, config, lambda now: now["status"]["phase"] == "ReviewRequired")
    (look,) = re.findall(r"with \.venv/bin/virt-steward (.*)", said)
    shown = await steward(*shlex.split(look), kubeconfig=_kubeconfig(demo))
    assert shown.code == 0, shown.stderr
    assert "psi=1" in shown.stdout


async def test_the_second_thing_to_try_has_the_waiting_plan_approved(demo: Child, newcomer: Client) -> None:
    _, move_the_pin, _ = commands_in(demo.log.read_text())
    approver = Ref(INSTALL_PLAN_APPROVER, APPROVER)
    assert await _comes_to_be(newcomer, approver, lambda now: "NotPinned" in _waits(now))
    subscription = await object_of(newcomer, move_the_pin)
    await carry_out(newcomer, move_the_pin)
    pinned = f"{OPERATOR}.v2.1.0"
    assert await _comes_to_be(newcomer, subscription, lambda now: now["status"]["installedCSV"] == pinned)
    assert await _comes_to_be(newcomer, approver, lambda now: not _waits(now))


def _waits(approver: Object) -> list[str]:
    plans = approver["status"].get("pending", ())
    return [one["reason"] for one in plans if one["plan"].startswith(f"{PINNED.namespace}/")]


async def test_the_third_thing_to_try_is_set_right(demo: Child, newcomer: Client) -> None:
    _, _, spoil = commands_in(demo.log.read_text())
    service = await object_of(newcomer, spoil)
    assert await _comes_to_be(newcomer, service, _is_there)
    assert (await carry_out(newcomer, spoil))["metadata"]["labels"]["app"] == "mine"
    right = "virt-platform-autopilot"
    assert await _comes_to_be(newcomer, service, lambda now: now["metadata"]["labels"]["app"] == right)


async def _comes_to_be(client: Client, ref: Ref, holds: Callable[[Object], bool]) -> bool:
    async def now() -> bool:
        try:
            return holds(await client.get(ref))
        except (KeyError, NotFound):  # nobody has said anything about it yet
            return False

    return await eventually(now, within=60)


def _is_there(_: Object) -> bool:
    return True


def test_ctrl_c_stops_the_demo_and_leaves_nothing_behind(demo: Child) -> None:
    programs = _children(demo.pid)
    assert Counter(programs.values()) == PROGRAMS
    os.kill(demo.pid, signal.SIGINT)
    assert eventually_blocking(lambda: not demo.alive, within=30)
    assert {name for pid, name in programs.items() if is_running(pid)} == set()
    assert demo.log.read_text().endswith("nothing is left behind\n")
    assert [*demo.log.with_suffix("").iterdir()] == []


def _children(pid: int) -> dict[int, str]:
    """The programs that a process has started and that run."""
    started = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return {int(one): Path(Path(f"/proc/{one}/cmdline").read_text().split("\0")[0]).name for one in started}
