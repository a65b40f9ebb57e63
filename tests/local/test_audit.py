"""The audit log as tests read it."""

import json
from pathlib import Path

from tests.audit import AuditLog
from tests.cluster import PlainClient
from virt_steward_demo.local.controlplane import ControlPlane


def test_audit_log_has_every_answered_request(control_plane: ControlPlane, audit_log: AuditLog) -> None:
    admin = PlainClient.from_kubeconfig(control_plane.kubeconfig)
    for number in range(30):
        mark = audit_log.mark()
        path = f"/api/v1/namespaces/default/configmaps/absent-{number}"
        admin.get(path)
        [request] = [request for request in audit_log.since(mark) if request.user == "admin"]
        assert (request.verb, request.resource, request.uri) == ("get", "configmaps", path)
        assert (request.namespace, request.name, request.code) == ("default", f"absent-{number}", 404)
        assert request.received <= request.time
        assert not request.is_write


def test_audit_log_has_large_responses(control_plane: ControlPlane, audit_log: AuditLog) -> None:
    admin = PlainClient.from_kubeconfig(control_plane.kubeconfig)
    mark = audit_log.mark()
    assert admin.get("/openapi/v2").code == 200
    assert "/openapi/v2" in [request.uri for request in audit_log.since(mark)]


def test_audit_log_distinguishes_writes(control_plane: ControlPlane, audit_log: AuditLog) -> None:
    admin = PlainClient.from_kubeconfig(control_plane.kubeconfig)
    mark = audit_log.mark()
    admin.create("/api/v1/namespaces/default/configmaps", {"metadata": {"generateName": "audited-"}})
    [request] = [request for request in audit_log.since(mark) if request.user == "admin"]
    assert (request.verb, request.code, request.is_write) == ("create", 201, True)


def test_audit_log_is_read_across_rotated_files(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "audit.log")
    (tmp_path / "audit.log").write_text(an_entry("before"))
    mark = log.mark()
    with (tmp_path / "audit.log").open("a") as file:
        file.write(an_entry("first"))
    assert [request.uri for request in log.since(mark)] == ["/first"]
    (tmp_path / "audit.log").rename(tmp_path / "audit-2030-01-01T00-00-00.000.log")
    (tmp_path / "audit.log").write_text(an_entry("second") + an_entry("x" * 1000))
    assert [request.uri for request in log.since(mark)] == ["/first", "/second", f"/{'x' * 1000}"]


def an_entry(asked: str) -> str:
    times = dict.fromkeys(("requestReceivedTimestamp", "stageTimestamp"), "2030-01-01T00:00:00.000000Z")
    entry = {"user": {}, "verb": "get", "stage": "ResponseComplete", "requestURI": f"/{asked}", **times}
    return f"{json.dumps(entry)}\n"
