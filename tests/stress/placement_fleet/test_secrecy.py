"""Nothing that a run or a command produces shows a token, a key or a certificate of any cluster."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial

import aiohttp
import pytest
import yaml
from aiohttp import web

from tests.cli.commands import steward
from tests.eventually import eventually
from tests.gateway import Gateway, a_gateway, a_status
from tests.kube.kubeconfigs import a_kubeconfig
from tests.members import secrets_in
from tests.stress.placement_fleet.clusters import Fleet
from tests.stress.placement_fleet.conftest import Start
from virt_steward.apis.kubevirtconfig import KUBEVIRT_CONFIG
from virt_steward.controllers.placement.observation import CONFIG_ANNOTATION, MACHINE
from virt_steward.kube.client import Selection
from virt_steward.kube.events import EVENT
from virt_steward_demo.local.controlplane import ControlPlane, ReservedPort

REVOKED = "an-unmistakable-token-that-was-revoked"
HIDDEN = "an-unmistakable-token-in-what-is-no-kubeconfig"
SERVERS = ("metrics", "debug", "health-probe")
COMMANDS = (
    ("explain", "machine", "{namespace}/searching"),
    ("explain", "machine", "{namespace}/on-garbage"),
    ("place", "--dry-run", "--all", "--placement-strategy=least-loaded"),
    ("place", "--dry-run", "{namespace}/on-revoked"),
    ("status",),
    ("explain", "machine", "{namespace}/nobody"),
)


@pytest.fixture
async def blabbing(fleet: Fleet) -> AsyncIterator[Gateway]:
    """A way to the last cluster, whose server repeats whatever it is shown."""

    async def repeats(request: web.BaseRequest) -> web.StreamResponse | None:
        shown = request.headers["Authorization"]
        return a_status(403, shown, f"{shown} may not") if "virtualmachines" in request.path else None

    async with a_gateway(fleet.members[4].control_plane) as gateway:
        gateway.intercept = repeats
        yield gateway


@pytest.fixture
def ports() -> dict[str, int]:
    """For the servers of one process."""
    reserved = {name: ReservedPort() for name in SERVERS}
    for port in reserved.values():
        port.release()
    return {name: port.number for name, port in reserved.items()}


async def kubeconfigs(fleet: Fleet, blabbing: Gateway) -> dict[str, str]:
    """By config: some that work, and some for every way in which they may not."""
    first, second, third, fourth, last = fleet.members
    with_command = a_kubeconfig(user={"token": HIDDEN, "exec": {"command": "id", "apiVersion": "v1"}})
    return {
        "certified": first.with_certificate(),
        "known": second.kubeconfig,
        "revoked": third.with_token(REVOKED),
        "silent": fourth.kubeconfig,
        "blabbing": last.kubeconfig.replace(last.control_plane.server, blabbing.secure_server),
        "garbage": f"users: [{HIDDEN}",
        "shapeless": f"users: [{{name: u, user: {HIDDEN}}}]",
        "command": yaml.safe_dump(with_command),
    }


async def test_placement_never_shows_secrets(
    fleet: Fleet, start: Start, blabbing: Gateway, ports: dict[str, int], control_plane: ControlPlane
) -> None:
    contents = await kubeconfigs(fleet, blabbing)
    for config, kubeconfig in contents.items():
        await fleet.join_secret(config, kubeconfig)
        await fleet.configure(config)
        await fleet.machine(f"on-{config}", annotations={CONFIG_ANNOTATION: config})
    await fleet.machine("searching")
    addresses = [f"--{name}-bind-address=127.0.0.1:{port}" for name, port in ports.items()]
    silent = fleet.members[3].control_plane
    silent.freeze()
    try:
        with start("--log-level=debug", *addresses) as process:
            assert await eventually(partial(fleet.waits_for, "searching", "Forbidden"), within=30)
            for broken in ("garbage", "shapeless", "command"):
                assert await eventually(partial(fleet.waits_for, f"on-{broken}", "BadKubeconfig"))
            assert await eventually(partial(fleet.is_in, "CredentialsInvalid", "revoked"))
            assert await eventually(partial(fleet.is_in, "Unreachable", "silent"))
            produced = {"log": str(process.log()), **await pages(ports), **await objects(fleet)}
        produced |= await answers(fleet, control_plane)
    finally:
        silent.thaw()
    for proof in ("unauthorized (401)", "timed out after", "forbidden (403)", "is not YAML"):
        assert proof in produced["machines"]
        assert proof in produced["explain machine -o json"]
    assert 'cluster="certified"' in produced["/metrics"]
    secrets = {REVOKED, HIDDEN, control_plane.token}
    for config in ("certified", "known", "silent", "blabbing"):
        secrets |= secrets_in(contents[config])
    print(f"\nsecrets: {len(secrets)}, outputs: {len(produced)}, characters: {sum(map(len, produced.values()))}")
    shown = {(name, secret) for name, text in produced.items() for secret in secrets if secret in text}
    assert shown == set()


async def pages(ports: dict[str, int]) -> dict[str, str]:
    """What the process serves, by path."""
    found = {}
    async with aiohttp.ClientSession() as session:

        async def fetch(server: str, path: str) -> str:
            async with session.get(f"http://127.0.0.1:{ports[server]}{path}") as response:
                found[path] = await response.text()
            return found[path]

        await fetch("metrics", "/metrics")
        await fetch("health-probe", "/readyz?verbose")
        for path in (await fetch("debug", "/debug/")).split():
            await fetch("debug", path)
    assert "/debug/tasks" in found
    return found


async def objects(fleet: Fleet) -> dict[str, str]:
    """All that anyone can read beside the Secrets themselves."""
    return {
        "machines": str(await fleet.client.list(MACHINE, Selection(fleet.namespace))),
        "configs": str(await fleet.client.list(KUBEVIRT_CONFIG)),
        "events": str(await fleet.client.list(EVENT)),
    }


async def answers(fleet: Fleet, control_plane: ControlPlane) -> dict[str, str]:
    """What commands print, on either stream and in either form."""
    found: dict[str, str] = {}

    async def run(command: tuple[str, ...], form: str) -> None:
        arguments = [part.format(namespace=fleet.namespace) for part in command]
        ended = await steward(*arguments, "-o", form, kubeconfig=control_plane.kubeconfig)
        name = f"{' '.join(command[:2])} -o {form}"
        found[name] = found.get(name, "") + ended.stdout + ended.stderr

    for command in COMMANDS:
        await asyncio.gather(run(command, "text"), run(command, "json"))
    return found
