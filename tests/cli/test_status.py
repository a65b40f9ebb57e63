import json

from tests.cli.commands import steward
from virt_steward_demo.local.controlplane import ControlPlane


async def test_status_reads_the_named_hyperconverged(control_plane: ControlPlane) -> None:
    named = ("--hyperconverged", "elsewhere/another")
    ended = await steward("status", *named, "-o", "json", kubeconfig=control_plane.kubeconfig)
    assert ended.code == 0, ended.stderr
    assert "elsewhere/another" in json.loads(ended.stdout)["autopilot"]["summary"]
