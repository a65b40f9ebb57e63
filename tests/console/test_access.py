"""The console's own account has exactly the rights that it uses, and none to write."""

from tests.audit import AuditLog
from tests.console.objects import define_all
from tests.console.rig import a_console
from tests.grants import an_account
from virt_steward.console.access import ACCESS
from virt_steward.kube.client import Client
from virt_steward.objects.identity import Key
from virt_steward.packaging.parts import access_of
from virt_steward.platform.hco import HYPERCONVERGED
from virt_steward.runtime.access import Installation
from virt_steward.settings import CONSOLE
from virt_steward_demo.local.controlplane import ControlPlane

READING = {"get", "list", "watch"}


def test_access_grants_only_reads() -> None:
    assert {verb for grant in ACCESS.all_grants for verb in grant.verbs} <= READING
    assert "secrets" not in {grant.kind.plural for grant in ACCESS.all_grants}


def test_access_names_the_hyperconverged_of_the_options() -> None:
    elsewhere = access_of(CONSOLE, Key("elsewhere", "another"))
    assert {name for grant in elsewhere.grants if grant.kind == HYPERCONVERGED for name in grant.names} == {"another"}


async def test_access_is_exactly_what_the_console_uses(
    control_plane: ControlPlane, admin: Client, namespace: str, audit_log: AuditLog
) -> None:
    await define_all(admin)
    fresh = await an_account(admin, ACCESS, Installation(namespace, prefix=namespace))
    mark = audit_log.mark()
    async with a_console(control_plane, fresh.token) as served, served.browser() as browser:
        await browser.get(served.links[-1].removeprefix(served.origin))
        for path in ("/", "/inbox", "/profiles", "/autopilot", "/approvals", "/placement", "/activity"):
            assert (await browser.get(path)).status == 200
        asked = audit_log.since(mark)
    assert fresh.denied(asked) == []
    assert fresh.unused(asked) == []
