"""The control plane itself: what it lets in, what it writes, and how it fails."""

import http.client
import json
import socket
import ssl
import stat
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from tests.cluster import Answer, PlainClient
from tests.eventually import eventually_blocking
from virt_steward_demo.local import LocalError
from virt_steward_demo.local.binaries import Binaries
from virt_steward_demo.local.certificates import Identity
from virt_steward_demo.local.controlplane import ControlPlane

NAMESPACES = "/api/v1/namespaces"
CONFIG_MAPS = f"{NAMESPACES}/default/configmaps"


@pytest.fixture
def admin(control_plane: ControlPlane) -> PlainClient:
    return PlainClient.from_kubeconfig(control_plane.kubeconfig)


def a_config_map(name: str, **metadata: object) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}}


def who_am_i(control_plane: ControlPlane, identity: Identity, folder: Path) -> Answer:
    (folder / "client.pem").write_bytes(identity.certificate + identity.key)
    trust = ssl.create_default_context(cadata=control_plane.authority.certificate.decode())
    trust.load_cert_chain(folder / "client.pem")
    review = '{"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}'
    path, headers = "/apis/authentication.k8s.io/v1/selfsubjectreviews", {"Content-Type": "application/json"}
    with closing(http.client.HTTPSConnection("127.0.0.1", control_plane.port, context=trust)) as connection:
        connection.request("POST", path, review, headers)
        response = connection.getresponse()
        return Answer(response.status, json.load(response))


def test_control_plane_admin_token_has_all_rights(admin: PlainClient) -> None:
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview"}
    everything = {"resourceAttributes": {"verb": "*", "group": "*", "resource": "*"}}
    answer = admin.create("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {**review, "spec": everything})
    assert answer.body["status"]["allowed"]


@pytest.mark.parametrize("token", [None, "wrong"], ids=["no token", "a wrong token"])
def test_control_plane_rejects_unauthenticated_requests(admin: PlainClient, token: str | None) -> None:
    stranger = replace(admin, token=token)
    assert stranger.get(NAMESPACES).code == 401
    assert stranger.create(CONFIG_MAPS, a_config_map("stranger")).code == 401


def test_control_plane_files_are_private(control_plane: ControlPlane) -> None:
    paths = [control_plane.kubeconfig.parent, *control_plane.kubeconfig.parent.rglob("*")]
    assert len(paths) > 10
    assert [path for path in paths if stat.S_IMODE(path.stat().st_mode) & 0o077] == []


def test_control_plane_listens_on_loopback_only(control_plane: ControlPlane) -> None:
    listening = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    addresses = {fields[1] for fields in listening if fields[3] == "0A"}
    for port in (control_plane.port, control_plane.etcd_port):
        assert {address for address in addresses if address.endswith(f":{port:04X}")} == {f"0100007F:{port:04X}"}


def test_etcd_refuses_client_without_certificate(control_plane: ControlPlane) -> None:
    trust = ssl.create_default_context(cafile=control_plane.kubeconfig.parent / "etcd-ca.crt")
    with (
        socket.create_connection(("127.0.0.1", control_plane.etcd_port), 5) as plain,
        trust.wrap_socket(plain, server_hostname="127.0.0.1") as connection,
        pytest.raises(ssl.SSLError, match="CERTIFICATE_REQUIRED"),
    ):
        connection.recv(1)


def test_control_plane_deletes_namespaces(admin: PlainClient) -> None:
    admin.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "short-lived"}})
    admin.create(f"{NAMESPACES}/short-lived/configmaps", a_config_map("content"))
    admin.ask("DELETE", f"{NAMESPACES}/short-lived")
    assert eventually_blocking(lambda: admin.get(f"{NAMESPACES}/short-lived").code == 404, within=20)


def test_control_plane_collects_garbage(admin: PlainClient) -> None:
    owner = admin.create(CONFIG_MAPS, a_config_map("owner")).body["metadata"]
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["uid"]}
    assert admin.create(CONFIG_MAPS, a_config_map("owned", ownerReferences=[reference])).code == 201
    admin.ask("DELETE", f"{CONFIG_MAPS}/owner")
    assert eventually_blocking(lambda: admin.get(f"{CONFIG_MAPS}/owned").code == 404, within=20)


def test_control_plane_issues_service_account_tokens(admin: PlainClient) -> None:
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    issued = admin.create(f"{NAMESPACES}/default/serviceaccounts/default/token", request)
    account = replace(admin, token=issued.body["status"]["token"])
    refusal = account.get(CONFIG_MAPS)
    assert refusal.code == 403
    assert "system:serviceaccount:default:default" in refusal.body["message"]


def test_certificate_passes_strict_verification(control_plane: ControlPlane) -> None:
    trust = ssl.create_default_context(cadata=control_plane.authority.certificate.decode())
    trust.verify_flags |= ssl.VERIFY_X509_STRICT
    with (
        socket.create_connection(("127.0.0.1", control_plane.port), 5) as plain,
        trust.wrap_socket(plain, server_hostname="127.0.0.1") as connection,
    ):
        assert connection.version() == "TLSv1.3"


def test_client_certificate_authenticates_user_and_groups(control_plane: ControlPlane, tmp_path: Path) -> None:
    answer = who_am_i(control_plane, control_plane.authority.client("alice", ["developers"]), tmp_path)
    assert answer.body["status"]["userInfo"]["username"] == "alice"
    assert answer.body["status"]["userInfo"]["groups"] == ["developers", "system:authenticated"]


def test_expired_client_certificate_is_refused(control_plane: ControlPlane, tmp_path: Path) -> None:
    expired = control_plane.authority.client("alice", lifetime=timedelta(hours=-1))
    assert who_am_i(control_plane, expired, tmp_path).code == 401


def test_killed_api_server_restarts_with_same_address_and_data(control_plane: ControlPlane, admin: PlainClient) -> None:
    admin.create(CONFIG_MAPS, a_config_map("survivor"))
    control_plane.kill_apiserver()
    with pytest.raises(ConnectionRefusedError):
        admin.get("/version")
    control_plane.start_apiserver()
    control_plane.wait_until_ready()
    assert admin.get(f"{CONFIG_MAPS}/survivor").code == 200


def test_frozen_api_server_answers_after_thaw(control_plane: ControlPlane, admin: PlainClient) -> None:
    control_plane.freeze()
    try:
        with pytest.raises(TimeoutError), socket.create_connection(("127.0.0.1", control_plane.port), 1) as plain:
            ssl.create_default_context().wrap_socket(plain, server_hostname="127.0.0.1")
    finally:
        control_plane.thaw()
    assert admin.get("/version").code == 200


def test_control_plane_names_program_that_exits_at_start(tmp_path: Path) -> None:
    for name in ("etcd", "kube-apiserver", "kube-controller-manager"):
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\necho {name} has no luck\n[ {name} = kube-apiserver ] || exec sleep 60\n")
        program.chmod(0o700)
    control_plane = ControlPlane(Binaries(tmp_path), tmp_path / "run")
    with pytest.raises(LocalError, match=r"kube-apiserver has exited: kube-apiserver has no luck; see "):
        control_plane.start()
    assert control_plane.pids == {}
