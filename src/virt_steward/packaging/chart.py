"""An installation as a Helm chart: the same parts, with the places left open that values fill.

Parts are made for a cluster whose names are all unmistakable, and these are then replaced by what a template says
instead. So a part is described once, and a chart can hardly differ from it.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from virt_steward import __version__
from virt_steward.controllers import NAMES
from virt_steward.controllers.autopilot.options import HCO, OPT_OUT_DELETES
from virt_steward.objects.identity import Key
from virt_steward.packaging.files import NOTICE, documents
from virt_steward.packaging.parts import (
    IMAGE,
    REPLICAS,
    RESOURCES,
    InstallOptions,
    Object,
    access_of,
    console,
    installed,
    monitor,
)
from virt_steward.runtime import access
from virt_steward.runtime.access import Installation
from virt_steward.settings import CONSOLE

if TYPE_CHECKING:
    from collections.abc import Iterable

NAME = "virt-steward"

_OPEN = {
    "open-namespace": "{{ $.Release.Namespace }}",
    "open-secrets-namespace": "{{ . }}",
    "open-image": "{{ $.Values.image | quote }}",
    "open-replicas": "{{ $.Values.replicas }}",
    "open-resources": "{{ toJson $.Values.resources }}",
    "open-platform-namespace": "{{ $.Values.hyperconverged.namespace }}",
    "open-hyperconverged": "{{ $.Values.hyperconverged.name }}",
}
"""What stands in the parts, and what stands in the templates."""
_ARGS_OF = "open-args-of-"
_KEPT = {"helm.sh/resource-policy": "keep"}
_POLICIES_ARE_SERVED = (
    '.Capabilities.APIVersions.Has "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy"'  # since 1.30
)


_MONITORS_ARE_SERVED = '.Capabilities.APIVersions.Has "monitoring.coreos.com/v1/ServiceMonitor"'


def chart() -> dict[str, str]:
    """The files, by path."""
    return {
        "Chart.yaml": NOTICE + documents([_chart()]),
        "values.yaml": _VALUES,
        "values.schema.json": json.dumps(_schema(), indent=2) + "\n",
        "templates/NOTES.txt": _NOTES,
        **{f"templates/{topic}.yaml": NOTICE + text for topic, text in _templates().items()},
    }


def _chart() -> Object:
    return {
        "apiVersion": "v2",
        "name": NAME,
        "description": "Governs everything around KubeVirt: tunes after showing what changes, keeps best practice, "
        "approves pinned operator versions, places machines.",
        "type": "application",
        "version": __version__,
        "appVersion": __version__,
        "kubeVersion": ">=1.27.0-0",
    }


def _templates() -> dict[str, str]:
    wishes = InstallOptions(
        Installation("open-namespace"), "open-image", Key("open-platform-namespace", "open-hyperconverged")
    )
    parts = installed(wishes)
    del parts["namespace"]  # `helm install --create-namespace` makes it
    kept = [_annotated(crd, _KEPT) for crd in parts.pop("crds")]
    policies = parts.pop("policies")
    asked_for = _template(_opened(obj, CONSOLE) if obj["kind"] == "Deployment" else obj for obj in console(wishes))
    return {
        "crds": _when("$.Values.crds", _template(kept)),
        "policies": _when(_POLICIES_ARE_SERVED, _template(policies)),
        **{name: _controller(name, wishes, parts.pop(name)) for name in NAMES},
        CONSOLE: _when("$.Values.console.enabled", asked_for),
        **{topic: _template(objects) for topic, objects in parts.items()},
        "monitor": _when(_MONITORS_ARE_SERVED, _template([monitor(wishes.installation)])),
    }


def _controller(name: str, wishes: InstallOptions, objects: list[Object]) -> str:
    text = _template(_opened(obj, name) if obj["kind"] == "Deployment" else obj for obj in objects)
    more = ""
    if name == "placement":
        secrets = replace(wishes.installation, secret_namespaces=("open-secrets-namespace",))
        added = [_renamed(obj, "secrets") for obj in _besides(name, wishes, secrets, objects)]
        more = _repeated("$.Values.secretNamespaces", _template(added))
    if name == "autopilot":
        deletes = replace(wishes.installation, extras=(OPT_OUT_DELETES,))
        more = _when("$.Values.optOutDeletes", "---\n" + _template(_besides(name, wishes, deletes, objects)))
    return _when(f"$.Values.controllers.{name}.enabled", text + more)


def _besides(name: str, wishes: InstallOptions, wider: Installation, objects: list[Object]) -> list[Object]:
    """What a wider installation adds."""
    return [obj for obj in access.manifests(access_of(name, wishes.hco), wider) if obj not in objects]


def _renamed(obj: Object, suffix: str) -> Object:
    """Name a role and its binding otherwise than those that there are already, where namespaces coincide."""
    renamed = {**obj, "metadata": {**obj["metadata"], "name": f"{obj['metadata']['name']}-{suffix}"}}
    if "roleRef" in obj:
        renamed["roleRef"] = {**obj["roleRef"], "name": f"{obj['roleRef']['name']}-{suffix}"}
    return renamed


def _opened(deployment: Object, name: str) -> Object:
    """Leave open how many there are, what they may use, and what else they are told."""
    pod = deployment["spec"]["template"]
    [container] = pod["spec"]["containers"]
    told = [*container["args"], f"{_ARGS_OF}{name}"]
    containers = [{**container, "args": told, "resources": "open-resources"}]
    spec = {**deployment["spec"], "template": {**pod, "spec": {**pod["spec"], "containers": containers}}}
    return {**deployment, "spec": spec | ({} if name == CONSOLE else {"replicas": "open-replicas"})}


def _template(objects: Iterable[Object]) -> str:
    text = documents(objects)
    if "{{" in text:
        raise ValueError("a part has braces that would be taken for a template")
    for mark, instead in _OPEN.items():
        text = text.replace(mark, instead)
    return "".join(_line(line) for line in text.splitlines(keepends=True))


def _line(line: str) -> str:
    """Let a range stand where further arguments go."""
    indent, found, name = line.rstrip().partition(f"- {_ARGS_OF}")
    if not found:
        return line
    values = name if name == CONSOLE else f"controllers.{name}"
    begin, each, end = f"{{{{- range $.Values.{values}.args }}}}", "- {{ . | quote }}", "{{- end }}"
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
# The image of all controllers.
image: {IMAGE}

# Of each controller; one of them acts, the others stand by.
replicas: {REPLICAS}

resources: {json.dumps(RESOURCES)}

# Install the definitions of our kinds. They stay when the release is uninstalled, and so do all objects of them.
crds: true

# The HyperConverged of the platform, which the advisor and the autopilot look after.
hyperconverged:
  namespace: {HCO.namespace}
  name: {HCO.name}

# Which controllers run, and what else each is told: `virt-steward run --help` lists it.
controllers:
{_CONTROLLERS}

# The console, in one pod. Reach it by `kubectl port-forward`; docs/howto/use-the-console.md tells which arguments put
# it behind a proxy.
console: {{enabled: false, args: []}}

# Where the kubeconfigs of clusters are: the placement may read Secrets there, and nowhere else.
secretNamespaces: []

# Let the autopilot delete what it made, for platform.kubevirt.io/on-opt-out: delete.
optOutDeletes: false
"""

_NOTES = """\
virt-steward runs in namespace {{ $.Release.Namespace }}:
{{- range $name, $controller := $.Values.controllers }}
{{- if $controller.enabled }}
  {{ $name }}
{{- end }}
{{- end }}

Nothing is changed before somebody asks for it. To begin:
  kubectl get virtplatformconfigs             what can be tuned; set spec.action to DryRun for a plan
  kubectl explain installplanapprover.spec    which operator versions may be approved
  virt-steward status                         what needs a person, across all controllers
{{- if $.Values.console.enabled }}
  kubectl -n {{ $.Release.Namespace }} port-forward deployment/virt-steward-console 8090
                                              then open http://127.0.0.1:8090 and sign in with a token
{{- end }}
"""


def _schema() -> dict[str, Any]:
    """Helm refuses values that do not fit: a misspelt name would otherwise change nothing, silently."""
    text = {"type": "string", "minLength": 1}
    controller = _record(enabled={"type": "boolean"}, args={"type": "array", "items": text})
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        **_record(
            image=text,
            replicas={"type": "integer", "minimum": 0},
            resources={"type": "object"},
            crds={"type": "boolean"},
            hyperconverged=_record(namespace=text, name=text),
            controllers=_record(**dict.fromkeys(NAMES, controller)),
            console=controller,
            secretNamespaces={"type": "array", "items": text, "uniqueItems": True},
            optOutDeletes={"type": "boolean"},
            **{"global": {"type": "object"}},  # Helm's own
        ),
    }


def _record(**properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "properties": properties}
