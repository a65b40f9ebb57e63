"""Metrics over TLS, on a real API server and under generated rights: who gets them, and who does not."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest
from cryptography import x509

from tests.audit import AuditLog, Mark
from tests.eventually import eventually
from tests.grants import Account, an_account
from tests.kube.certificates import a_pair
from tests.runtime.test_manager import fetch, the_process, the_settings
from tests.runtime.tls_clients import MountedSecret, a_client_context, write_pair
from tests.stamper import a_stamper
from virt_steward.kube.client import Client
from virt_steward.runtime import serving_tls
from virt_steward.runtime.access import RBAC, Access, Installation
from virt_steward.runtime.metrics_auth import GRANTS, OPENSHIFT_PROMETHEUS, MetricsAuth, optional_grants
from virt_steward.runtime.serving_tls import CertificateFiles
from virt_steward.settings import MetricsSettings, Settings
from virt_steward_demo.local.controlplane import ControlPlane

Start = Callable[[MetricsAuth], AbstractAsyncContextManager["Scraped"]]


class Scraped:
    """A process whose metrics a test reads."""

    def __init__(self, settings: Settings, account: Account, secret: MountedSecret) -> None:
        self.settings, self.account, self.secret = settings, account, secret
        self.address = settings.addresses.metrics

    async def status(self, token: str = "", certificate: tuple[Path, Path] | None = None) -> int:
        """The status of an answer; 0 if TLS refuses the connection."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        trust = a_client_context(certificate=certificate)
        url = f"https://localhost:{self.address.port if self.address else 0}/metrics"
        try:
            async with aiohttp.ClientSession() as session, session.get(url, ssl=trust, headers=headers) as answer:
                text = await answer.text()
        except (aiohttp.ClientConnectionError, OSError):
            return 0
        assert ("certwatcher_read_certificate_total" in text) is (answer.status == 200)
        return answer.status

    async def serial(self) -> int:
        """That of the certificate it shows."""
        _, writer = await asyncio.open_connection(
            "localhost", self.address.port if self.address else 0, ssl=a_client_context()
        )
        shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.close()
        await writer.wait_closed()
        return x509.load_der_x509_certificate(shown).serial_number


@pytest.fixture
def start(
    control_plane: ControlPlane, admin: Client, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Start:
    monkeypatch.setattr(serving_tls, "CHECK_INTERVAL", 0.1)
    stamper = a_stamper(namespace)
    definition = replace(stamper, access=replace(stamper.access, extras=GRANTS))

    @asynccontextmanager
    async def started(auth: MetricsAuth) -> AsyncIterator[Scraped]:
        installation = Installation(
            namespace, prefix=namespace, target_namespaces=(namespace,), extras=optional_grants(auth)
        )
        account = await an_account(admin, definition.access, installation)
        secret = MountedSecret(tmp_path / "tls")
        files = CertificateFiles(secret.folder / "tls.crt", secret.folder / "tls.key")
        settings = replace(
            the_settings(account.write_kubeconfig(tmp_path / "kubeconfig", control_plane), namespace),
            metrics=MetricsSettings(files, auth),
        )
        async with the_process(settings, definition):
            assert await eventually(lambda: _is_ready(settings))
            yield Scraped(settings, account, secret)

    return started


async def _is_ready(settings: Settings) -> bool:
    return (await fetch(settings.addresses.health, "/readyz"))[0] == 200  # plain, for the kubelet


async def a_token(admin: Client, namespace: str, name: str, *, may_scrape: bool) -> str:
    """That of an account which may read metrics, or may not."""
    account = await an_account(admin, Access(name), Installation(namespace, prefix=namespace))
    if may_scrape:
        role = f"{namespace}-{name}-scrapes"
        kinds = {"apiVersion": f"{RBAC}/v1"}
        await admin.create(
            {
                **kinds,
                "kind": "ClusterRole",
                "metadata": {"name": role},
                "rules": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}],
            }
        )
        subject = {"kind": "ServiceAccount", "name": f"{namespace}-{name}", "namespace": namespace}
        reference = {"apiGroup": RBAC, "kind": "ClusterRole", "name": role}
        await admin.create(
            {
                **kinds,
                "kind": "ClusterRoleBinding",
                "metadata": {"name": role},
                "roleRef": reference,
                "subjects": [subject],
            }
        )
    return account.token


async def test_metrics_are_for_tokens_with_the_right(
    admin: Client, namespace: str, start: Start, audit_log: AuditLog
) -> None:
    begin = audit_log.mark()
    prometheus = await a_token(admin, namespace, "prometheus", may_scrape=True)
    stranger = await a_token(admin, namespace, "stranger", may_scrape=False)
    async with start(MetricsAuth.TOKEN) as process:
        assert await process.status(prometheus) == 200
        assert await process.status(stranger) == 403
        assert await process.status("garbage") == 401
        assert await process.status("") == 401
        before = len(_reviews(process, audit_log, begin))
        assert [await process.status(one) for one in (prometheus, stranger, "garbage")] == [200, 403, 401]
        requests = audit_log.since(begin)
        assert process.account.denied(requests) == []
        assert before == len(_reviews(process, audit_log, begin)) == 5, "answers are remembered"


def _reviews(process: Scraped, audit_log: AuditLog, begin: Mark) -> list[str]:
    return [
        one.resource
        for one in audit_log.since(begin)
        if one.user == process.account.user and one.resource in ("tokenreviews", "subjectaccessreviews")
    ]


async def test_metrics_are_for_client_certificates_with_the_name(
    control_plane: ControlPlane, start: Start, tmp_path: Path, audit_log: AuditLog
) -> None:
    begin = audit_log.mark()

    def a_certificate(name: str) -> tuple[Path, Path]:
        identity = control_plane.authority.client(name)
        paths = tmp_path / f"{len(name)}.crt", tmp_path / f"{len(name)}.key"
        paths[0].write_bytes(identity.certificate)
        paths[1].write_bytes(identity.key)
        return paths

    prometheus = a_certificate(OPENSHIFT_PROMETHEUS)
    async with start(MetricsAuth.CLIENT_CERTIFICATE) as process:
        assert await process.status(certificate=prometheus) == 200
        assert await process.status(certificate=a_certificate("system:admin")) == 403
        assert await process.status() == 0
        foreign = write_pair(tmp_path / "foreign", a_pair(OPENSHIFT_PROMETHEUS))
        assert await process.status(certificate=foreign) == 0
        assert await process.status("token", certificate=prometheus) == 200
        assert process.account.denied(audit_log.since(begin)) == []


async def test_metrics_take_up_new_certificate_and_keep_it_against_garbage(start: Start) -> None:
    async with start(MetricsAuth.NONE) as process:
        first = await process.serial()
        process.secret.swap(second := a_pair())
        assert await eventually(lambda: _shows(process, second.certificate.serial_number))
        assert second.certificate.serial_number != first
        process.secret.swap_content(b"garbage", b"garbage")
        process.secret.swap_content(a_pair().chain, a_pair().key)
        assert await process.status() == 200
        assert await process.serial() == second.certificate.serial_number
        process.secret.swap(third := a_pair())
        assert await eventually(lambda: _shows(process, third.certificate.serial_number))


async def _shows(process: Scraped, serial: int) -> bool:
    return await process.serial() == serial
