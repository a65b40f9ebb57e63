"""What an installation is made of: namespace, kinds, policies, and each controller's rights and Deployment."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from virt_steward import __version__
from virt_steward.apis import CRDS
from virt_steward.controllers import NAMES, definition
from virt_steward.controllers.advisor.admission import POLICIES
from virt_steward.controllers.advisor.options import THE_HCO, AdvisorOptions
from virt_steward.controllers.autopilot.options import AutopilotOptions
from virt_steward.controllers.options import ControllerOptions
from virt_steward.runtime import access
from virt_steward.runtime.access import Installation
from virt_steward.settings import CONSOLE

if TYPE_CHECKING:
    from virt_steward.objects.identity import Key
    from virt_steward.runtime.access import Access

Object = dict[str, Any]

IMAGE = f"virt-steward:{__version__}"
METRICS, HEALTH, PAGES = 8080, 8082, 8090
REPLICAS = 2
RESOURCES: Object = {"requests": {"cpu": "20m", "memory": "80Mi"}, "limits": {"memory": "256Mi"}}
OF_THE_PLATFORM = ("advisor", "autopilot", CONSOLE)
"""Those that have to know which HyperConverged is meant."""
KNOWN_AS = {"autopilot": {"app": "virt-platform-autopilot", "control-plane": "controller-manager"}}
"""Labels by which the catalog's own Service for metrics finds the autopilot, in the namespace of the platform."""


@dataclass(frozen=True, slots=True)
class InstallOptions:
    """What may differ from one installation to the next."""

    installation: Installation = field(default_factory=Installation)
    image: str = IMAGE
    hco: Key = THE_HCO
    console: bool = False
    """Whether the console is served, too: to those who are forwarded to its pod, unless it is told otherwise."""
    example_profile: bool = False
    """Whether the advisor runs with --example-profile, and has the rights for it."""


def access_of(name: str, hco: Key = THE_HCO, *, example_profile: bool = False) -> Access:
    """What a controller, or the console, may do on a platform of that name."""
    if name == CONSOLE:
        from virt_steward.console.access import access as access_of_console  # noqa: PLC0415 - others need not carry it

        return access_of_console(AutopilotOptions(hco))
    advisor = AdvisorOptions(hco=hco, example_profile=example_profile)
    return definition(name, ControllerOptions(advisor=advisor, autopilot=AutopilotOptions(hco))).access


def installed(wishes: InstallOptions) -> dict[str, list[Object]]:
    """Return what is installed, by topic, in the order in which it can be applied."""
    return {
        "namespace": [_namespace(wishes.installation)],
        "crds": [crd.manifest() for crd in CRDS],
        "policies": list(POLICIES),
        **{name: _controller(name, wishes) for name in NAMES},
        **({CONSOLE: console(wishes)} if wishes.console else {}),
        "metrics": [_service(wishes.installation, "metrics", METRICS, {})],
    }


def console(wishes: InstallOptions) -> list[Object]:
    """One pod, since sessions live in its memory."""
    [*rights, deployment] = _controller(CONSOLE, wishes)
    alone = {**deployment, "spec": {**deployment["spec"], "replicas": 1}}
    found_by = {"app.kubernetes.io/component": CONSOLE}
    return [*rights, alone, _service(wishes.installation, CONSOLE, PAGES, found_by)]


def monitor(installation: Installation) -> Object:
    """For clusters with the operator of Prometheus: `namespace` stays that of the object that a series is about."""
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "ServiceMonitor",
        "metadata": {
            "name": installation.prefix,
            "namespace": installation.namespace,
            "labels": _labels("metrics"),
        },
        "spec": {
            "selector": {"matchLabels": _labels("metrics")},
            "endpoints": [{"port": "metrics", "interval": "30s", "honorLabels": True}],
        },
    }


def _controller(name: str, wishes: InstallOptions) -> list[Object]:
    rights = access_of(name, wishes.hco, example_profile=wishes.example_profile)
    return [*access.manifests(rights, wishes.installation), _deployment(name, wishes)]


def _namespace(installation: Installation) -> Object:
    labels = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn")}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": installation.namespace, "labels": labels}}


def _labels(component: str) -> dict[str, str]:
    return {"app.kubernetes.io/name": "virt-steward", "app.kubernetes.io/component": component}


def _service(installation: Installation, topic: str, port: int, found_by: dict[str, str]) -> Object:
    """Of one component, or of all of them: a scraper asks each pod behind it."""
    name = f"{installation.prefix}-{topic}"
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": installation.namespace, "labels": _labels(topic)},
        "spec": {
            "clusterIP": "None",
            "selector": {"app.kubernetes.io/name": "virt-steward", **found_by},
            "ports": [{"name": topic, "port": port, "targetPort": port}],
        },
    }


def _deployment(name: str, wishes: InstallOptions) -> Object:
    labels = _labels(name)
    account = f"{wishes.installation.prefix}-{name}"
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": account, "namespace": wishes.installation.namespace, "labels": labels},
        "spec": {
            "replicas": REPLICAS,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels | KNOWN_AS.get(name, {})},
                "spec": {
                    "serviceAccountName": account,
                    "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
                    "containers": [_container(name, wishes)],
                },
            },
        },
    }


def _container(name: str, wishes: InstallOptions) -> Object:
    is_told = name in OF_THE_PLATFORM and wishes.hco != THE_HCO
    example = ["--example-profile"] if name == "advisor" and wishes.example_profile else []
    return {
        "name": name,
        "image": wishes.image,
        "command": ["virt-steward", "run"],
        "args": [f"--controllers={name}", *([f"--hyperconverged={wishes.hco}"] if is_told else []), *example],
        "env": [{"name": "POD_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}}],
        "ports": [{"name": "metrics", "containerPort": METRICS}, {"name": "health", "containerPort": HEALTH}],
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": "health"}},
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": "health"}},
        "resources": RESOURCES,
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
    }
