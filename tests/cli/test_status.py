import json

from tests.cli.commands import steward
from virt_steward.cli.status import fold_left_alone
from virt_steward_demo.local.controlplane import ControlPlane


async def test_status_reads_the_named_hyperconverged(control_plane: ControlPlane) -> None:
    named = ("--hyperconverged", "elsewhere/another")
    ended = await steward("status", *named, "-o", "json", kubeconfig=control_plane.kubeconfig)
    assert ended.code == 0, ended.stderr
    assert "elsewhere/another" in json.loads(ended.stdout)["autopilot"]["summary"]


def test_status_joins_assets_that_are_left_alone_for_the_same_reason() -> None:
    alone = [(name, "Left alone", "Not in the allow-list") for name in ("one", "two", "three")]
    other = [("four", "Left alone", "CRD not installed"), ("five", "Staged", "it waits")]
    assert list(fold_left_alone([*alone, *other])) == [*other, ("3 assets", "Left alone", "Not in the allow-list")]
    assert list(fold_left_alone(alone[:2])) == alone[:2]
