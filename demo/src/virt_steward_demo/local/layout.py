"""Where a control plane keeps its files, and what it writes there before it starts."""

import base64
import secrets
from dataclasses import dataclass
from pathlib import Path

import yaml

from virt_steward_demo.local.certificates import Authority, Identity, signing_key
from virt_steward_demo.local.files import make_folder, write_file

ADMIN = "admin"
CONTROLLER_MANAGER = "system:kube-controller-manager"

AUDIT_POLICY = """\
# One entry per request, without bodies.
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
"""


@dataclass(frozen=True, slots=True)
class Layout:
    """The files of one control plane: `folder` is created by each start, `data` can be kept between starts."""

    folder: Path
    data: Path

    @property
    def kubeconfig(self) -> Path:
        return self.folder / "kubeconfig"

    @property
    def controller_manager_kubeconfig(self) -> Path:
        return self.folder / "kube-controller-manager.kubeconfig"

    @property
    def tokens(self) -> Path:
        return self.folder / "tokens.csv"

    @property
    def audit_policy(self) -> Path:
        return self.folder / "audit-policy.yaml"

    @property
    def audit_log(self) -> Path:
        return self.folder / "audit.log"

    @property
    def service_account_key(self) -> Path:
        """Kept with the data, so that tokens issued to service accounts stay valid."""
        return self.data / "service-account.key"

    @property
    def etcd(self) -> Path:
        return self.data / "etcd"

    def log(self, program: str) -> Path:
        return self.folder / f"{program}.log"

    def certificate(self, name: str) -> Path:
        return self.folder / f"{name}.crt"

    def key(self, name: str) -> Path:
        return self.folder / f"{name}.key"


def write_certificates(layout: Layout, cluster: Authority) -> None:
    """Write what the programs need. etcd trusts its own authority, which signs only the API server."""
    etcd = Authority("etcd-authority")
    write_file(layout.certificate("ca"), cluster.certificate)
    write_file(layout.certificate("etcd-ca"), etcd.certificate)
    _write_identity(layout, "kube-apiserver", cluster.server("kube-apiserver"))
    _write_identity(layout, "etcd", etcd.server("etcd"))
    _write_identity(layout, "etcd-client", etcd.client("kube-apiserver"))
    if not layout.service_account_key.exists():
        write_file(layout.service_account_key, signing_key())


def write_access(layout: Layout, server: str) -> str:
    """Write tokens, audit policy and kubeconfigs; return the admin's token."""
    admin, controller_manager = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
    rows = (
        f'{admin},{ADMIN},{ADMIN},"system:masters"',
        # One user name for all controllers, so that the audit log distinguishes them from the admin.
        f'{controller_manager},{CONTROLLER_MANAGER},{CONTROLLER_MANAGER},"system:masters"',
    )
    write_file(layout.tokens, "\n".join(rows).encode())
    write_file(layout.audit_policy, AUDIT_POLICY.encode())
    authority = layout.certificate("ca").read_bytes()
    write_file(layout.kubeconfig, _kubeconfig(server, authority, admin))
    write_file(layout.controller_manager_kubeconfig, _kubeconfig(server, authority, controller_manager))
    return admin


def make_folders(layout: Layout) -> None:
    make_folder(layout.folder)
    make_folder(layout.data)


def _write_identity(layout: Layout, name: str, identity: Identity) -> None:
    write_file(layout.certificate(name), identity.certificate)
    write_file(layout.key(name), identity.key)


def _kubeconfig(server: str, authority: bytes, token: str) -> bytes:
    name = "virt-steward-local"
    cluster = {"server": server, "certificate-authority-data": base64.b64encode(authority).decode()}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": {"token": token}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }
    return yaml.safe_dump(document, sort_keys=False).encode()
