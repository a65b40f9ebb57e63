"""The audit log as tests read it."""

from tests.audit import AuditLog
from tests.cluster import PlainClient
from virt_steward.local.controlplane import ControlPlane


def test_every_answered_request_is_in_the_log_at_once(control_plane: ControlPlane, audit_log: AuditLog) -> None:
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


def test_a_large_answer_is_in_the_log_too(control_plane: ControlPlane, audit_log: AuditLog) -> None:
    admin = PlainClient.from_kubeconfig(control_plane.kubeconfig)
    mark = audit_log.mark()
    assert admin.get("/openapi/v2").code == 200
    assert "/openapi/v2" in [request.uri for request in audit_log.since(mark)]


def test_a_write_is_told_from_a_read(control_plane: ControlPlane, audit_log: AuditLog) -> None:
    admin = PlainClient.from_kubeconfig(control_plane.kubeconfig)
    mark = audit_log.mark()
    admin.create("/api/v1/namespaces/default/configmaps", {"metadata": {"generateName": "audited-"}})
    [request] = [request for request in audit_log.since(mark) if request.user == "admin"]
    assert (request.verb, request.code, request.is_write) == ("create", 201, True)
