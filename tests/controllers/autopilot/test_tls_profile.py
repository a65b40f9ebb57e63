"""What the autopilot's process serves over TLS follows the platform's profile, without a restart."""

import asyncio
import ssl
from pathlib import Path
from typing import Any

from structlog.testing import capture_logs

from tests.audit import AuditLog
from tests.controllers.autopilot.rig import AutopilotRig, at_work
from tests.eventually import eventually
from tests.ports import a_free_port
from tests.runtime.tls_clients import TLS11, TLS12, TLS13, MountedSecret, a_client_context
from virt_steward.controllers.autopilot.options import HCO
from virt_steward.objects.identity import Ref
from virt_steward.objects.tls_parameters import TlsParameters
from virt_steward.platform.hco import HYPERCONVERGED
from virt_steward.platform.tls_profile import API_SERVER, PROFILES
from virt_steward.runtime.addresses import Address
from virt_steward.runtime.probes import Addresses
from virt_steward.runtime.serving_tls import CertificateFiles
from virt_steward.settings import MetricsSettings
from virt_steward_demo.local.controlplane import ControlPlane

VERSIONS = {TLS11: "1.1", TLS12: "1.2", TLS13: "1.3"}


class Port:
    """Where metrics are served."""

    def __init__(self) -> None:
        self.number = a_free_port()

    async def offered(self) -> str:
        return " ".join([name for version, name in VERSIONS.items() if await self._offers(version)])

    async def _offers(self, version: ssl.TLSVersion) -> bool:
        try:
            _, writer = await asyncio.open_connection("localhost", self.number, ssl=a_client_context(version))
        except OSError:
            return False
        writer.close()
        await writer.wait_closed()
        return True

    async def comes_to_offer(self, versions: str) -> bool:
        async def is_so() -> bool:
            return await self.offered() == versions

        return await eventually(is_so)

    def settings(self, secret: MountedSecret, tls: TlsParameters | None = None) -> tuple[Addresses, MetricsSettings]:
        files = CertificateFiles(secret.folder / "tls.crt", secret.folder / "tls.key")
        address = Address("--metrics-bind-address", "127.0.0.1", self.number)
        return Addresses(address, None, None), MetricsSettings(files, tls=tls)


async def set_profile(rig: AutopilotRig, profile: Any) -> None:
    """On the HyperConverged."""
    await rig.client.merge_patch(
        Ref(HYPERCONVERGED, HCO), {"spec": {"security": {"tlsSecurityProfile": profile}}}, manager="admin"
    )


async def set_of_api_server(rig: AutopilotRig, profile: Any) -> None:
    spec = {"tlsSecurityProfile": profile} if profile else {}
    obj = {"apiVersion": "config.openshift.io/v1", "kind": "APIServer", "metadata": {"name": "cluster"}, "spec": spec}
    await rig.client.apply(obj, manager="admin", force=True)


async def test_metrics_follow_tls_profile_while_running(
    rig: AutopilotRig, control_plane: ControlPlane, tmp_path: Path, audit_log: AuditLog
) -> None:
    port = Port()
    addresses, metrics = port.settings(MountedSecret(tmp_path / "tls"))
    async with at_work(rig, control_plane, tmp_path, addresses=addresses, metrics=metrics):
        assert await port.comes_to_offer("1.2 1.3")
        await set_of_api_server(rig, {"type": "Modern", "modern": {}})
        assert await port.comes_to_offer("1.3"), "TLS 1.2 is refused from now on"
        await set_profile(rig, {"type": "Old", "old": {}})
        assert await port.comes_to_offer("1.1 1.2 1.3"), "the HyperConverged comes first"
        await set_profile(rig, None)
        assert await port.comes_to_offer("1.3")
        await rig.client.delete(API_SERVER)
        assert await port.comes_to_offer("1.2 1.3")
        with capture_logs() as logged:
            await set_profile(rig, {"type": "Custom", "custom": {"minTLSVersion": "VersionTLS13", "ciphers": ["ALL"]}})
            assert await eventually(lambda: any(one["event"] == "TLS profile not fully usable" for one in logged))
        assert await port.offered() == "1.2 1.3"
    assert rig.account.denied(audit_log.since(rig.begin)) == []


async def test_metrics_keep_tls_of_setting(rig: AutopilotRig, control_plane: ControlPlane, tmp_path: Path) -> None:
    port = Port()
    addresses, metrics = port.settings(MountedSecret(tmp_path / "tls"), PROFILES["Modern"])
    await set_profile(rig, {"type": "Old", "old": {}})
    with capture_logs() as logged:
        async with at_work(rig, control_plane, tmp_path, addresses=addresses, metrics=metrics):
            assert await eventually(lambda: any(one.get("profile") == "Old" for one in logged))
            assert await port.offered() == "1.3"
