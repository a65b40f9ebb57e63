"""Standing by and taking over, again and again: never two writers."""

from pathlib import Path

from tests.audit import AuditLog
from tests.eventually import eventually
from tests.otheroperator import OtherOperator
from tests.replicas import effective, some_replicas
from tests.stamper import other_lease
from virt_steward.kube.client import Client
from virt_steward.objects.identity import Key
from virt_steward_demo.local.controlplane import ControlPlane

ROUNDS = 20


async def test_controller_stands_by_and_takes_over_twenty_times(
    control_plane: ControlPlane, admin: Client, namespace: str, tmp_path: Path, audit_log: AuditLog
) -> None:
    other = OtherOperator(admin, Key(namespace, other_lease(namespace)))
    with some_replicas(control_plane, admin, namespace, tmp_path) as replicas:
        ann = await replicas.account("ann")
        replica = replicas.start(ann)
        assert await eventually(lambda: replica.leads)
        writes = 0
        for number in range(ROUNDS):
            async with other.running():
                assert await eventually(lambda: replica.stands_by)
                mark = audit_log.mark()
                await replicas.ask_for_stamps(f"paper-{number}")
                for _ in range(5):
                    await other.renew()
                writes += len(effective(audit_log.since(mark), ann.user))
            if number % 2:
                await other.delete()
            assert await eventually(replicas.all_are_stamped, within=10)
        stamps = await replicas.stamps()
    print(
        f"\n{ROUNDS} rounds: {writes} writes while standing by, {sum(stamps.values())} stamps on {len(stamps)} objects"
    )
    assert writes == 0
    assert set(stamps.values()) == {1}
