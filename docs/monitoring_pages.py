"""The pages of metrics and alerts."""  # noqa: INP001 - beside a script

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from made import calls_in, last_name
from tables import NOTICE, codes, escaped, table

from virt_steward.catalog.load import load
from virt_steward.catalog.offline import offline
from virt_steward.catalog.render import Rendered, Renderer
from virt_steward.packaging.monitoring import MonitoringOptions
from virt_steward.packaging.monitoring import alerts as installed_alerts
from virt_steward.runtime.access import Installation

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

ROOT = Path(__file__).parents[1]
RUNBOOKS = ROOT / "docs" / "runbooks"
PLATFORM = """
apiVersion: hco.kubevirt.io/v1beta1
kind: HyperConverged
metadata: {name: kubevirt-hyperconverged, namespace: openshift-cnv}
"""
FAMILIES = {
    "Counter": "counter",
    "CounterMetricFamily": "counter",
    "Gauge": "gauge",
    "GaugeMetricFamily": "gauge",
    "Histogram": "histogram",
}
SECTIONS = {
    "controllers.advisor": "Advisor",
    "controllers.autopilot": "Autopilot",
    "controllers.approver": "Approver",
    "controllers.placement": "Placement",
    "": "Every process",
}
METRICS = """# Metrics

Every process serves its metrics at `/metrics` ([read the metrics](../howto/read-the-metrics.md)). A controller has
series only while it runs in the process. Replicas that do not lead have series too: join with
`leader_election_master_status` to see the leader alone, as the [alerts](alerts.md) do. The names of the workqueue,
of reconciles and of requests are those of controller-runtime.
"""
ALERTS = """# Alerts

Each alert of the controllers has a runbook: what it means, how to find out more, what to do. A former name of an
alert fires beside the new one for one release.

## Of the controllers
"""
EXPORTER = """
## Of VMs and nodes

These come with the exporter of VM metrics, which is opt-in ([assets](assets.md#metrics-exporter)). Their
descriptions in the rule say what to look at.

"""


@dataclass(frozen=True, slots=True)
class Metric:
    name: str
    type: str
    text: str
    labels: tuple[str, ...]
    module: str


def metrics(trees: Mapping[str, ast.Module]) -> str:
    found = metrics_in(trees)
    sections = [f"\n## {title}\n\n{_metrics(found, prefix)}" for prefix, title in SECTIONS.items()]
    return f"{NOTICE}{METRICS}{''.join(sections)}"


def _metrics(found: list[Metric], prefix: str) -> str:
    ours = [one for one in found if _section(one.module) == prefix]
    rows = ((f"`{one.name}`", one.type, codes(one.labels), escaped(one.text)) for one in ours)
    return table(("metric", "type", "labels", "meaning"), rows)


def _section(module: str) -> str:
    return next(prefix for prefix in SECTIONS if module.startswith(prefix))


def metrics_in(trees: Mapping[str, ast.Module]) -> list[Metric]:
    """All metrics that these modules define, by name."""
    found = [
        metric
        for module, tree in trees.items()
        if any(
            isinstance(node, ast.ImportFrom) and str(node.module).startswith("prometheus_client") for node in tree.body
        )
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef)
        for metric in _Scope(module, tree, function).metrics()
    ]
    return sorted(found, key=lambda one: one.name)


class _Scope:
    """Evaluates the definitions of metrics in one function: direct ones, by a `partial`, or by an inner function."""

    def __init__(self, module: str, tree: ast.Module, function: ast.FunctionDef) -> None:
        self._name = module
        self._function = function
        assignments = (node for node in (*tree.body, *ast.walk(function)) if isinstance(node, ast.Assign))
        self._assigned = {
            target.id: node.value for node in assignments for target in node.targets if isinstance(target, ast.Name)
        }
        self._functions = {
            node.name: node
            for node in function.body
            if isinstance(node, ast.FunctionDef) and _returns(node) in FAMILIES
        }

    def metrics(self) -> Iterator[Metric]:
        return filter(None, map(self._metric, calls_in(self._function)))

    def _metric(self, call: ast.Call) -> Metric | None:
        name = last_name(call.func)
        given = _given(call)
        if (bound := self._assigned.get(name)) and isinstance(bound, ast.Call) and last_name(bound.func) == "partial":
            name, given = last_name(bound.args[0]), _given(bound, skip=1) | given
        elif function := self._functions.get(name):
            return self._of_function(function, call)
        if name not in FAMILIES or not isinstance(given.get("name"), ast.Constant):
            return None
        space = given.get("namespace")
        prefix = f"{space.value}_" if isinstance(space, ast.Constant) else ""
        return self._built(f"{prefix}{self._text(given['name'])}", FAMILIES[name], given)

    def _of_function(self, function: ast.FunctionDef, call: ast.Call) -> Metric:
        """`gauge("paused", ...)`, where `gauge` returns `Gauge(f"prefix_{name}", text, labels)`."""
        made = function.body[-1].value  # type: ignore[attr-defined]
        parameters = [one.arg for one in function.args.args]
        defaults = dict(zip(reversed(parameters), reversed(function.args.defaults), strict=False))
        values = {**defaults, **dict(zip(parameters, call.args, strict=False))}
        values |= {one.arg: one.value for one in call.keywords if one.arg}
        given = {
            key: values.get(node.id, node) if isinstance(node, ast.Name) else node for key, node in _given(made).items()
        }
        pattern = given["name"]
        parts = [one.value if isinstance(one, ast.FormattedValue) else one for one in pattern.values]  # type: ignore[attr-defined]
        name = "".join(self._text(values.get(one.id, one) if isinstance(one, ast.Name) else one) for one in parts)
        return self._built(name, FAMILIES[last_name(made.func)], given)

    def _built(self, name: str, type_: str, given: Mapping[str, ast.expr]) -> Metric:
        suffix = "_total" if type_ == "counter" else ""
        labels = given.get("labelnames") or given.get("labels")
        return Metric(
            f"{name}{suffix}",
            type_,
            self._text(given["documentation"]),
            tuple(self._labels(labels)) if labels else (),
            self._name,
        )

    def _text(self, node: ast.expr) -> str:
        if not isinstance(node, ast.Constant):
            raise SystemExit(f"{self._name}:{node.lineno}: the name or text of a metric is not a constant")
        return str(node.value)

    def _labels(self, node: ast.expr) -> Iterator[str]:
        match node:
            case ast.Constant(value=value):
                yield str(value)
            case ast.List(elts=items) | ast.Tuple(elts=items):
                for item in items:
                    yield from self._labels(item)
            case ast.Starred(value=value):
                yield from self._labels(value)
            case ast.Name(id=name):
                yield from self._labels(self._assigned[name])


def _returns(function: ast.FunctionDef) -> str:
    """The class that a function returns an object of; empty if it does something else."""
    last = function.body[-1]
    return last_name(last.value.func) if isinstance(last, ast.Return) and isinstance(last.value, ast.Call) else ""


def _given(call: ast.Call, skip: int = 0) -> dict[str, ast.expr]:
    positional = dict(zip(("name", "documentation", "labelnames"), call.args[skip:], strict=False))
    return positional | {one.arg: one.value for one in call.keywords if one.arg}


def alerts() -> str:
    ours = [rule for rule in alert_rules() if _runbook(rule).exists()]
    others = [rule for rule in alert_rules() if not _runbook(rule).exists()]
    return f"{NOTICE}{ALERTS}\n{_alerts(ours)}{EXPORTER}{_alerts(others)}"


def _alerts(rules: list[dict[str, Any]]) -> str:
    return table(("alert", "severity", "after", "meaning"), map(_alert, rules))


def _runbook(rule: Mapping[str, Any]) -> Path:
    return RUNBOOKS / f"{rule['alert']}.md"


def _alert(rule: Mapping[str, Any]) -> tuple[str, ...]:
    name, notes = rule["alert"], rule["annotations"]
    shown = f"[{name}](../runbooks/{name}.md)" if _runbook(rule).exists() else name
    summary = notes.get("summary") or notes.get("description", "")
    if "deprecated" in notes:
        summary = f"R{notes['deprecated'].removeprefix('r')}."
    return shown, rule["labels"]["severity"], rule.get("for", "at once"), escaped(summary)


@cache
def alert_rules() -> tuple[dict[str, Any], ...]:
    """The alerts of the installation and of the catalog, by name."""
    found: dict[str, dict[str, Any]] = {}
    for manifest in (*_installed(), *_rendered()):
        for group in manifest.get("spec", {}).get("groups", ()):
            found |= {rule["alert"]: rule for rule in group["rules"] if "alert" in rule}
    return tuple(found[name] for name in sorted(found))


def _installed() -> Iterable[dict[str, Any]]:
    return installed_alerts(Installation(), MonitoringOptions()).values()


def _rendered() -> Iterator[dict[str, Any]]:
    catalog = load()
    renderer, context = Renderer(catalog), offline(PLATFORM, catalog, {}).context
    for asset in catalog.assets:
        if asset.object.kind.name == "PrometheusRule":
            rendering = renderer.render(asset, context)
            if not isinstance(rendering, Rendered):
                raise SystemExit(f"{asset.name} cannot be rendered: {rendering}")
            yield rendering.object
