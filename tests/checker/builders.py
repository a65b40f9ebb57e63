"""Small histories, written by hand: entries of an audit log at given seconds."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.checker.check import check
from tests.checker.facts import Facts, Replica
from tests.checker.history import CREATED, History, Interval, Object, merged, read

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
ADMIN = "admin"
CONTROLLERS = ("advisor", "autopilot", "approver", "placement")
PLURALS = {
    "MachineConfig": ("machineconfigs", "machineconfiguration.openshift.io"),
    "MachineConfigPool": ("machineconfigpools", "machineconfiguration.openshift.io"),
    "HyperConverged": ("hyperconvergeds", "hco.kubevirt.io"),
    "KubeDescheduler": ("kubedeschedulers", "operator.openshift.io"),
    "VirtPlatformConfig": ("virtplatformconfigs", "advisor.kubevirt.io"),
    "InstallPlan": ("installplans", "operators.coreos.com"),
    "Subscription": ("subscriptions", "operators.coreos.com"),
    "InstallPlanApprover": ("installplanapprovers", "operators.bapu.cloud"),
    "Machine": ("machines", "vitistack.io"),
    "Lease": ("leases", "coordination.k8s.io"),
    "ConfigMap": ("configmaps", ""),
    "Service": ("services", ""),
    "PrometheusRule": ("prometheusrules", "monitoring.coreos.com"),
}


def user(controller: str, name: str = "a") -> str:
    return f"system:serviceaccount:virt-steward:{name}-{controller}"


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def the_facts(**more: Any) -> Facts:
    replicas = {user(controller, name): Replica(controller, name) for controller in CONTROLLERS for name in "ab"}
    return Facts(replicas, **more)


@dataclass(slots=True)
class Log:
    """An audit log that grows with each write."""

    entries: list[Object] = field(default_factory=list)
    _live: dict[tuple[str, str, str], Object] = field(default_factory=dict)

    def put(self, seconds: float, by: str, kind: str, key: str, patch: Object, **how: Any) -> None:
        """Somebody creates an object or patches it; `code` is the answer, `brief` an answer with metadata only."""
        namespace, _, name = key.rpartition("/")
        before = self._live.get((kind, namespace, name))
        number = str(len(self.entries) + 1)
        obj = merged(before or {}, patch)
        given = {"name": name, "namespace": namespace, "uid": f"{kind}-{name}", "resourceVersion": number}
        obj = {"kind": kind, **obj, "metadata": {**obj.get("metadata", {}), **given}}
        code = how.get("code", 200 if before else CREATED)
        if code in (200, CREATED):
            self._live[kind, namespace, name] = obj
        answer = {"kind": "PartialObjectMetadata", "metadata": obj["metadata"]} if how.get("brief") else obj
        self._log(seconds, by, ("patch", kind, namespace, name), code, how.get("query", ""))
        self.entries[-1] |= {"requestObject": patch, **({"responseObject": answer} if code in (200, CREATED) else {})}

    def delete(self, seconds: float, by: str, kind: str, key: str) -> None:
        namespace, _, name = key.rpartition("/")
        self._live.pop((kind, namespace, name), None)
        self._log(seconds, by, ("delete", kind, namespace, name), 200, "")
        self.entries[-1]["responseObject"] = {"kind": "Status", "status": "Success"}

    def leads(self, seconds: float, controller: str, name: str = "a", duration: int = 4) -> None:
        spec = {"holderIdentity": f"{name}-1", "leaseDurationSeconds": duration, "renewTime": seconds}
        self.put(seconds, user(controller, name), "Lease", f"virt-steward/virt-steward-{controller}", {"spec": spec})

    def history(self, *outages: Interval) -> History:
        return read(self.entries, outages)

    def _log(self, seconds: float, by: str, what: tuple[str, str, str, str], code: int, query: str) -> None:
        verb, kind, namespace, name = what
        plural, group = PLURALS[kind]
        self.entries.append(
            {
                "stage": "ResponseComplete",
                "verb": verb,
                "requestURI": f"/apis/{plural}/{name}?{query}",
                "user": {"username": by},
                "objectRef": {"resource": plural, "apiGroup": group, "namespace": namespace, "name": name},
                "responseStatus": {"code": code},
                "requestReceivedTimestamp": at(seconds).isoformat(),
                "stageTimestamp": at(seconds + 0.01).isoformat(),
            }
        )


def an_item(name: str = "cluster", *taken_from: str) -> Object:
    target = {"kind": "KubeDescheduler", "name": name, "namespace": "ops", "apiVersion": "operator.openshift.io/v1"}
    return {"name": "item", "targetRef": target, "takes": [{"manager": one, "field": ".spec"} for one in taken_from]}


def a_config(action: str, *items: Object, plan: str = "sha256:1", approved: str | None = None) -> Object:
    notes = {"annotations": {"advisor.kubevirt.io/approved-plan": approved}}
    return {"metadata": notes, "spec": {"action": action}, "status": {"planHash": plan, "items": list(items)}}


def a_pool(spec: str, status: str, *, updating: bool = False) -> Object:
    condition = {"type": "Updating", "status": str(updating)}
    names = {part: {"configuration": {"name": name}} for part, name in (("spec", spec), ("status", status))}
    return {**names, "status": {**names["status"], "conditions": [condition]}}


def a_machine_config(argument: str) -> Object:
    labels = {"machineconfiguration.openshift.io/role": "worker"}
    return {"metadata": {"labels": labels}, "spec": {"kernelArguments": [argument]}}


def owned(**fields: str) -> Object:
    """The managedFields of an object whose spec has these fields, each with its manager."""
    entries = [{"manager": who, "fieldsV1": {"f:spec": {f"f:{name}": {}}}} for name, who in fields.items()]
    return {"managedFields": entries}


def found(log: Log, facts: Facts | None = None, *outages: Interval) -> list[str]:
    """The invariants that are broken. Leases are no matter here unless the log has some."""
    history = log.history(*outages)
    verdict = check(history, facts or the_facts())
    led = history.refs("leases.coordination.k8s.io")
    return [one.invariant for one in verdict.violations if led or one.invariant != "leader"]


def an_offered_plan(*, phase: str = "RequiresApproval", home: str = "virt-steward", pin: str = "op.v1") -> Log:
    log = Log()
    log.put(0, ADMIN, "InstallPlanApprover", f"{home}/all", {"spec": {}})
    log.put(0, ADMIN, "Subscription", "team/op", {"spec": {"startingCSV": pin}})
    plan = {"spec": {"clusterServiceVersionNames": ["op.v1"], "approved": False}, "status": {"phase": phase}}
    log.put(1, ADMIN, "InstallPlan", "team/install-1", plan)
    return log


def approve(log: Log, seconds: float = 5, approver: str = "InstallPlanApprover-all", by: str = "") -> None:
    stamp = {"annotations": {"operators.bapu.cloud/approved-by": approver}}
    log.put(
        seconds,
        by or user("approver"),
        "InstallPlan",
        "team/install-1",
        {"metadata": stamp, "spec": {"approved": True}},
        brief=True,
    )
