"""An installation as a Helm chart: the same parts as `parts.py`, with placeholders that become template expressions.

The parts are made with unmistakable names, and each of these is then replaced in the YAML text. For example, the
installation is in namespace `open-namespace`, which becomes `{{ $.Release.Namespace }}`. So each part is described
once, and the chart cannot differ from the kustomization.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from virt_steward import __version__
from virt_steward.controllers import NAMES
from virt_steward.controllers.autopilot.options import HCO, OPT_OUT_DELETES
from virt_steward.controllers.autopilot.overrides.scope import Activation
from virt_steward.objects.identity import Key
from virt_steward.packaging import operation
from virt_steward.packaging.chart_monitoring import MONITORING_SCHEMA, MONITORING_VALUES, monitoring_templates
from virt_steward.packaging.monitoring import METRICS, MonitoringOptions
from virt_steward.packaging.operation import (
    EGRESS_PORTS,
    IMAGE_PATTERN,
    PRIORITY_CLASS,
    OperationOptions,
    resources_of,
)
from virt_steward.packaging.overlay import OF_ONE_CONTROLLER
from virt_steward.packaging.parts import (
    IMAGE,
    NOTICE,
    NOTIFY_CONFIG,
    PAGES,
    REPLICAS,
    InstallOptions,
    Object,
    access_of,
    console,
    documents,
    installed,
    rbac_of_all_in_one,
    together,
)
from virt_steward.runtime import access
from virt_steward.runtime.access import ALL_IN_ONE, Installation
from virt_steward.settings import CONSOLE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from virt_steward.runtime.access import Access

NAME = "virt-steward"

_OPEN = {
    "open-namespace": "{{ $.Release.Namespace }}",
    "open-secrets-namespace": "{{ . }}",
    "open-image": "{{ $.Values.image | quote }}",
    "open-replicas": "{{ $.Values.replicas }}",
    "open-platform-namespace": "{{ $.Values.hyperconverged.namespace }}",
    "open-hyperconverged": "{{ $.Values.hyperconverged.name }}",
    "open-activation": "{{ $.Values.activation }}",
    "open-priority": "{{ $.Values.priorityClassName | quote }}",
    "open-egress-ports": '{{ include "virt-steward.egressPorts" $ }}',
    "open-controllers": '{{ include "virt-steward.controllers" $ }}',
    "open-policies": '{{ join "," $.Values.policyNamespaces }}',
    "open-prometheus-namespace": "{{ $.Values.monitoring.prometheus.namespace }}",
    "open-prometheus": "{{ $.Values.monitoring.prometheus.name }}",
}
"""The placeholder in the parts, and the template expression that replaces it."""
_ARGS_OF = "open-args-of-"
_OPTIONAL = {
    "--policy-namespaces=": "$.Values.policyNamespaces",
    "--activation=": f'ne $.Values.activation "{Activation.OPT_IN}"',
    NOTIFY_CONFIG: "$.Values.notifications",
}
"""Arguments that are left out with the default values, and the condition under which they are not."""
_RESOURCES_OF = "open-resources-of-"
_LIST_OF_NAMES = f"list {' '.join(json.dumps(name) for name in NAMES)}"
_HELPERS = f"""\
{{{{- /* The controllers that run, with commas between them. */ -}}}}
{{{{- define "virt-steward.controllers" -}}}}
{{{{- $found := list }}}}
{{{{- range {_LIST_OF_NAMES} }}}}
{{{{- if (index $.Values.controllers .).enabled }}}}{{{{ $found = append $found . }}}}{{{{ end }}}}
{{{{- end }}}}
{{{{- join "," $found }}}}
{{{{- end }}}}

{{{{- /* The ports that pods may connect to, as a NetworkPolicy names them. */ -}}}}
{{{{- define "virt-steward.egressPorts" -}}}}
{{{{- $found := list }}}}
{{{{- range $.Values.networkPolicy.egressPorts }}}}
{{{{- $found = append $found (dict "port" (int .) "protocol" "TCP") }}}}
{{{{- end }}}}
{{{{- toJson $found }}}}
{{{{- end }}}}
"""
_KEPT = {"helm.sh/resource-policy": "keep"}
_POLICIES_ARE_SERVED = (
    '.Capabilities.APIVersions.Has "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy"'  # since 1.30
)


def chart() -> dict[str, str]:
    """The files of the chart: text by path."""
    return {
        "Chart.yaml": NOTICE + documents([_chart()]),
        "values.yaml": _VALUES,
        "values.schema.json": json.dumps(_schema(), indent=2) + "\n",
        "templates/NOTES.txt": _NOTES,
        "templates/_helpers.tpl": _HELPERS,
        **{f"templates/{topic}.yaml": NOTICE + text for topic, text in _templates().items()},
    }


def _chart() -> Object:
    return {
        "apiVersion": "v2",
        "name": NAME,
        "description": "Controllers around KubeVirt: advisor (planned tuning), autopilot (best practice), approver "
        "(pinned operator versions), placement (which cluster runs a Machine).",
        "type": "application",
        "version": __version__,
        "appVersion": __version__,
        "kubeVersion": ">=1.27.0-0",
    }


def _templates() -> dict[str, str]:
    options = InstallOptions(
        Installation("open-namespace"),
        "open-image",
        Key("open-platform-namespace", "open-hyperconverged"),
        policy_namespaces=("open-policies",),
        activation="open-activation",
        notifications=True,
        monitoring=MonitoringOptions(prometheus=Key("open-prometheus-namespace", "open-prometheus")),
        operation=OperationOptions(priority_class="open-priority", network_policies=False),
    )
    parts = installed(options)
    del parts["namespace"]  # `helm install --create-namespace` makes it
    kept = [_annotated(crd, _KEPT) for crd in parts.pop("crds")]
    policies, aggregated = parts.pop("policies"), parts.pop("aggregated-roles")
    del parts["operation"]  # it depends on a value, as the policies of the network do
    network = operation.network_policy(options.installation, METRICS, "open-egress-ports")
    pages = operation.console_policy(options.installation, CONSOLE, PAGES)
    console_text = _template(_opened(obj, CONSOLE) for obj in console(options))
    return {
        "crds": _when("$.Values.crds", _template(kept)),
        "policies": _when(_POLICIES_ARE_SERVED, _template(policies)),
        "aggregated-roles": _when("$.Values.aggregateRoles", _template(aggregated)),
        **{name: _controller(name, options, parts.pop(name)) for name in NAMES},
        ALL_IN_ONE: _when("$.Values.allInOne", _all_in_one(options)),
        CONSOLE: _when("$.Values.console.enabled", console_text),
        "dashboards": _template(parts.pop("dashboards")),
        "operation": _when(
            f'eq $.Values.priorityClassName "{PRIORITY_CLASS}"', _template(operation.priority_class(OperationOptions()))
        ),
        "network": _when(
            "$.Values.networkPolicy.enabled",
            _template([network]) + _when("$.Values.console.enabled", "---\n" + _template([pages])),
        ),
        **{topic: _template(objects) for topic, objects in parts.items()},
        **monitoring_templates(options.installation, _template),
    }


def _controller(name: str, options: InstallOptions, objects: list[Object]) -> str:
    more, rights = "", access_of(name, options.hco)
    usual = options.installation_of(rights)
    if name == "placement":
        secrets = replace(usual, secret_namespaces=("open-secrets-namespace",))
        more = _repeated("$.Values.secretNamespaces", _by_variant(name, _besides(rights, secrets, objects)))
    if name == "autopilot":
        deletes = replace(usual, extras=(*usual.extras, OPT_OUT_DELETES))
        more = _when("$.Values.optOutDeletes", "---\n" + _by_variant(name, _besides(rights, deletes, objects)))
    return _when(f"$.Values.controllers.{name}.enabled", _by_variant(name, objects) + more)


def _by_variant(name: str, objects: list[Object]) -> str:
    """The roles, then what the controller has for itself or, with one Deployment for all, the bindings for that."""
    shared = [obj for obj in objects if obj["kind"] not in OF_ONE_CONTROLLER]
    own = [_opened(obj, name) for obj in objects if obj["kind"] in OF_ONE_CONTROLLER]
    _account, *bindings = rbac_of_all_in_one([obj for obj in own if "subjects" in obj], Installation())
    by_variant = f"{{{{- if $.Values.allInOne }}}}\n---\n{_template(bindings)}{{{{- else }}}}\n---\n{_template(own)}"
    return _template(shared) + by_variant + "{{- end }}\n"


def _all_in_one(options: InstallOptions) -> str:
    objects = installed(together(options))[ALL_IN_ONE]
    own = [obj for obj in objects if obj["kind"] in OF_ONE_CONTROLLER and "subjects" not in obj]
    text = _template(_opened(obj, ALL_IN_ONE) for obj in own)
    return text.replace(f"--controllers={','.join(NAMES)}", f"--controllers={_OPEN['open-controllers']}")


def _besides(rights: Access, wider: Installation, objects: list[Object]) -> list[Object]:
    """The objects that a wider installation adds."""
    return [obj for obj in access.manifests(rights, wider) if obj not in objects]


def _opened(deployment: Object, name: str) -> Object:
    """Put placeholders where values set the replicas, the resources and further arguments of a Deployment."""
    if deployment["kind"] != "Deployment":
        return deployment
    pod = deployment["spec"]["template"]
    [container] = pod["spec"]["containers"]
    args = [*container["args"], f"{_ARGS_OF}{name}"]
    containers = [{**container, "args": args, "resources": f"{_RESOURCES_OF}{name}"}]
    spec = {**deployment["spec"], "template": {**pod, "spec": {**pod["spec"], "containers": containers}}}
    return {**deployment, "spec": spec | ({} if name == CONSOLE else {"replicas": "open-replicas"})}


def _template(objects: Iterable[Object]) -> str:
    text = documents(objects).replace("{{", "{{`{{`}}")  # such as {{ $labels.name }} of an alert: not for Helm
    for placeholder, expression in _OPEN.items():
        text = text.replace(placeholder, expression)
    for name in (*NAMES, CONSOLE, ALL_IN_ONE):
        usual = f"{{{{ toJson (mergeOverwrite (fromJson `{json.dumps(resources_of(name))}`) $.Values.resources) }}}}"
        text = text.replace(f"{_RESOURCES_OF}{name}", usual)
    return "".join(_line(line) for line in text.splitlines(keepends=True))


def _line(line: str) -> str:
    """Replace the placeholder of further arguments by a range over those in the values; leave out default values."""
    for argument, condition in _OPTIONAL.items():
        if argument in line:
            indent = line.partition("-")[0]
            return f"{indent}{{{{- if {condition} }}}}\n{line}{indent}{{{{- end }}}}\n"
    indent, found, name = line.rstrip().partition(f"- {_ARGS_OF}")
    if not found:
        return line
    values = name if name == CONSOLE else f"controllers.{name}"
    begin, each, end = f"{{{{- range $.Values.{values}.args }}}}", "- {{ . | quote }}", "{{- end }}"
    if name == ALL_IN_ONE:
        begin = f"{{{{- range {_LIST_OF_NAMES} }}}}{{{{- with index $.Values.controllers . }}}}"
        begin += "{{- if .enabled }}{{- range .args }}"
        end = "{{- end }}" * 4
    return f"{indent}{begin}\n{indent}{each}\n{indent}{end}\n"


def _when(condition: str, text: str) -> str:
    return f"{{{{- if {condition} }}}}\n{text}{{{{- end }}}}\n"


def _repeated(values: str, text: str) -> str:
    return f"{{{{- range {values} }}}}\n---\n{text}{{{{- end }}}}\n"


def _annotated(obj: Object, notes: dict[str, str]) -> Object:
    metadata = obj["metadata"]
    return {**obj, "metadata": {**metadata, "annotations": {**metadata.get("annotations", {}), **notes}}}


_CONTROLLERS = "\n".join(f"  {name}: {{enabled: true, args: []}}" for name in NAMES)
_VALUES = f"""\
{NOTICE}
# The image of all controllers, by tag or by digest: registry.example/virt-steward@sha256:...
image: {IMAGE}

# Replicas of each controller: one leads, the others stand by.
replicas: {REPLICAS}

# What differs from the resources of the pods: {json.dumps(resources_of(NAMES[0]))},
# and more memory for the console and for allInOne.
resources: {{}}

# One Deployment with all controllers, and one account with the rights of all, instead of one for each.
allInOne: false

# The PriorityClass of all pods. {PRIORITY_CLASS} is installed with them; it is above usual pods, and evicts none.
priorityClassName: {PRIORITY_CLASS}

# Only metrics and the console can be reached, and pods reach only DNS and these TCP ports, at any address: API servers
# of this cluster and of members, endpoints of notifications, the Prometheus of gates. [] means all ports.
networkPolicy: {{enabled: true, egressPorts: {list(EGRESS_PORTS)}}}

# Install our CRDs. They stay when the release is uninstalled, and so do all their objects.
crds: true

# The HyperConverged object of the platform, for the advisor and the autopilot.
hyperconverged:
  namespace: {HCO.namespace}
  name: {HCO.name}

# opt-in: the autopilot is on if platform.kubevirt.io/autopilot on the HyperConverged is true or a list of assets.
# opt-out: unless it is false, as release 5.0 of the Go autopilot does.
activation: {Activation.OPT_IN}

# Which controllers run, and further arguments of each: see `virt-steward run --help`.
controllers:
{_CONTROLLERS}

# The console, in one pod. Reach it by `kubectl port-forward`; docs/howto/use-the-console.md lists the arguments that
# put it behind a proxy.
console: {{enabled: false, args: []}}

# Namespaces, besides that of the release, whose InstallPlanApprovers cover what their spec says. Those of any other
# namespace cover their own namespace alone.
policyNamespaces: []

# The namespaces of the Secrets with the clusters' kubeconfigs. The placement may read Secrets there, and nowhere else.
secretNamespaces: []

# Notify the endpoints in the Secret virt-steward-notify, key notify.yaml: see docs/howto/notify-people.md. Which
# endpoint autopilot and placement notify is an argument of theirs: --notify=autopilot=team-chat
notifications: false

# Add what the roles of viewers, requesters and approvers grant on our own kinds to the roles view, edit and admin of
# Kubernetes: see docs/reference/roles.md.
aggregateRoles: true

# Let the autopilot delete objects that it created, for platform.kubevirt.io/on-opt-out: delete.
optOutDeletes: false

{MONITORING_VALUES}"""

_NOTES = """\
virt-steward runs in namespace {{ $.Release.Namespace }}:
{{- range $name, $controller := $.Values.controllers }}
{{- if $controller.enabled }}
  {{ $name }}
{{- end }}
{{- end }}

Nothing changes until somebody requests it. To begin:
  kubectl get virtplatformconfigs             the profiles; set spec.action to DryRun for a plan
  kubectl explain installplanapprover.spec    how to pin the operator versions to approve
  virt-steward status                         what needs attention, across all controllers
{{- if $.Values.console.enabled }}
  kubectl -n {{ $.Release.Namespace }} port-forward deployment/virt-steward-console 8090
                                              then open http://127.0.0.1:8090 and sign in with a token
{{- end }}
{{- $labels := dig "metadata" "labels" dict (lookup "v1" "Namespace" "" $.Release.Namespace) }}
{{- if ne (get $labels "openshift.io/cluster-monitoring") "true" }}

On OpenShift, let its Prometheus read metrics and alerts of this namespace:
  kubectl label namespace {{ $.Release.Namespace }} openshift.io/cluster-monitoring=true
{{- end }}
"""


def _schema() -> dict[str, Any]:
    """The schema of the values. Helm refuses others: a misspelt name would otherwise be ignored."""
    text = {"type": "string", "minLength": 1}
    name = {**text, "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"}
    names = {"type": "array", "items": name, "uniqueItems": True}
    controller = _record(enabled={"type": "boolean"}, args={"type": "array", "items": text})
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        **_record(
            image={"type": "string", "pattern": IMAGE_PATTERN},
            replicas={"type": "integer", "minimum": 0},
            resources={"type": "object"},
            allInOne={"type": "boolean"},
            priorityClassName={"type": "string"},
            networkPolicy=_record(
                enabled={"type": "boolean"},
                egressPorts={"type": "array", "items": {"type": "integer", "minimum": 1, "maximum": 65535}},
            ),
            crds={"type": "boolean"},
            hyperconverged=_record(namespace=text, name=text),
            activation={"enum": [*Activation]},
            controllers=_record(**dict.fromkeys(NAMES, controller)),
            console=controller,
            policyNamespaces=names,
            secretNamespaces=names,
            notifications={"type": "boolean"},
            aggregateRoles={"type": "boolean"},
            optOutDeletes={"type": "boolean"},
            monitoring=MONITORING_SCHEMA,
            **{"global": {"type": "object"}},  # Helm's own
        ),
    }


def _record(**properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "properties": properties}
