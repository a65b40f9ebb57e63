"""The console as a process of `virt-steward run`."""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.console.objects import PLAN, a_review, put_config
from tests.console.people import People, a_rule, user_of
from tests.console.rig import Browser
from tests.eventually import eventually
from tests.grants import Account
from virt_steward.apis.profiles import LOAD_AWARE
from virt_steward.console.access import ACCESS
from virt_steward.kube.client import Client
from virt_steward_demo.local.controlplane import ControlPlane
from virt_steward_demo.local.processes import Child

pytestmark = pytest.mark.asyncio(loop_scope="module")
LINK = re.compile(r"console: (http://127\.0\.0\.1:\d+)(/sign-in/link\?code=\S+) \(works once\)")


@contextmanager
def a_process(kubeconfig: Path, *options: str) -> Iterator[Child]:
    argv = [sys.executable, "-m", "virt_steward", "run", f"--kubeconfig={kubeconfig}", *options]
    argv += [f"--{server}-bind-address=0" for server in ("metrics", "debug", "health-probe")]
    child = Child(argv, log=kubeconfig.with_suffix(".log"))
    try:
        yield child
    finally:
        child.kill()


async def test_console_runs_alone_and_prints_link(
    control_plane: ControlPlane, account: Account, client: Client, tmp_path: Path
) -> None:
    assert client
    kubeconfig = account.write_kubeconfig(tmp_path / "kubeconfig", control_plane)
    options = ("--controllers=console", "--console-bind-address=127.0.0.1:0")
    with a_process(kubeconfig, *options) as process:
        assert await eventually(lambda: bool(LINK.search(process.log.read_text())), within=30), process.log.read_text()
        found = LINK.search(process.log.read_text())
        assert found
        async with Browser(found[1]) as browser:
            page = await browser.get(found[2])
            assert "Inbox" in page.text
            assert account.user in page.text
        assert await eventually(lambda: len(LINK.findall(process.log.read_text())) == 2), "the next link is printed"


async def test_console_names_kinds_it_may_not_read(
    control_plane: ControlPlane, client: Client, people: People, tmp_path: Path
) -> None:
    await put_config(client, a_review())
    token = await people.somebody(a_rule("advisor.kubevirt.io"))
    kubeconfig = Account(ACCESS, user_of(token), token).write_kubeconfig(tmp_path / "kubeconfig", control_plane)
    options = ("--controllers=console", "--console-bind-address=127.0.0.1:0")
    with a_process(kubeconfig, *options) as process:
        assert await eventually(lambda: bool(LINK.search(process.log.read_text())), within=30), process.log.read_text()
        found = LINK.search(process.log.read_text())
        assert found
        async with Browser(found[1]) as browser:
            await browser.get(found[2])

            async def is_read() -> bool:
                page = (await browser.get(f"/profiles/{LOAD_AWARE}")).text
                return PLAN in page and "Loading:" not in page

            assert await eventually(is_read, within=30)
            page = (await browser.get("/")).text
            for kind in ("customresourcedefinitions.apiextensions.k8s.io", "installplans.operators.coreos.com"):
                assert f"<code>{kind}</code>" in page.partition('id="denied"')[2].partition("</p>")[0]


async def test_console_follows_hyperconverged_flag(control_plane: ControlPlane, client: Client, tmp_path: Path) -> None:
    assert client
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(control_plane.kubeconfig.read_text())
    options = ("--controllers=console", "--console-bind-address=127.0.0.1:0", "--hyperconverged=elsewhere/another")
    with a_process(kubeconfig, *options) as process:
        assert await eventually(lambda: bool(LINK.search(process.log.read_text())), within=30), process.log.read_text()
        found = LINK.search(process.log.read_text())
        assert found
        async with Browser(found[1]) as browser:
            await browser.get(found[2])

            async def is_missing() -> bool:
                return "missing:" in (await browser.get("/profiles")).text

            assert await eventually(is_missing, within=30)
            assert "HyperConverged elsewhere/another" in (await browser.get("/profiles")).text


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--controllers=console", "--console-bind-address=:8090"), "--console-url https://HOST"),
        (("--controllers=consle",), "choose from advisor, autopilot, approver, placement, console"),
    ],
)
async def test_console_refuses_invalid_flags(control_plane: ControlPlane, options: tuple[str, ...], says: str) -> None:
    with a_process(control_plane.kubeconfig, *options) as process:
        assert await eventually(lambda: not process.alive, within=20)
        assert says in process.log.read_text()
