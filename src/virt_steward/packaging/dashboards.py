"""Dashboards: one declaration of rows, panels and queries, written for Grafana and for Perses. Pure.

The dashboard of the autopilot is declared by its asset `autopilot-dashboard`, the others in `data/dashboards`.
"""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

import msgspec

from virt_steward.catalog.load import load
from virt_steward.catalog.yamlread import document
from virt_steward.controllers import NAMES

Object = dict[str, Any]

OVERVIEW = "overview"
AUTOPILOT_DASHBOARD = "autopilot-dashboard"
WIDTH, HEIGHT = 24, 8
"""Of the grid, in both programs, and of one row."""
_GRAFANA_UNITS = {"decimal": "short", "seconds": "s", "bytes": "bytes"}
"""By the name of the unit in Perses."""


class Query(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A PromQL expression, and how its series are named."""

    expr: str
    legend: str


class Panel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A chart over time."""

    key: str
    title: str
    queries: tuple[Query, ...]
    unit: str = "decimal"


class Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Panels side by side."""

    title: str
    panels: tuple[Panel, ...]

    @property
    def width(self) -> int:
        """Of each panel."""
        return WIDTH // len(self.panels)


class Dashboard(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Rows of panels, one below the other."""

    title: str
    rows: tuple[Row, ...]


def dashboards() -> dict[str, Dashboard]:
    """An overview of all controllers, and a dashboard for each of them."""
    [asset] = [one for one in load().assets if one.name == AUTOPILOT_DASHBOARD]
    declared = {"autopilot": asset.params}
    folder = resources.files("virt_steward.packaging") / "data" / "dashboards"
    for name in (OVERVIEW, *NAMES):
        if name not in declared:
            declared[name] = document((folder / f"{name}.yaml").read_text("utf-8"))
    return {name: msgspec.convert(declared[name], Dashboard) for name in (OVERVIEW, *NAMES)}


def grafana_files() -> dict[str, str]:
    """The dashboards as Grafana's JSON, by file name."""
    return {
        f"virt-steward-{name}.json": json.dumps(_for_grafana(name, dashboard), indent=1) + "\n"
        for name, dashboard in dashboards().items()
    }


def _for_grafana(name: str, dashboard: Dashboard) -> Object:
    source = {"type": "prometheus", "uid": "${datasource}"}
    panels: list[Object] = []
    for number, row in enumerate(dashboard.rows):
        top = number * (HEIGHT + 1)
        place = {"x": 0, "y": top, "w": WIDTH, "h": 1}
        panels.append({"type": "row", "title": row.title, "collapsed": False, "gridPos": place, "panels": []})
        panels += [
            {
                "type": "timeseries",
                "title": panel.title,
                "datasource": source,
                "gridPos": {"x": column * row.width, "y": top + 1, "w": row.width, "h": HEIGHT},
                "fieldConfig": {"defaults": {"unit": _GRAFANA_UNITS[panel.unit]}, "overrides": []},
                "targets": [
                    {"refId": chr(ord("A") + index), "datasource": source, "expr": one.expr, "legendFormat": one.legend}
                    for index, one in enumerate(panel.queries)
                ],
            }
            for column, panel in enumerate(row.panels)
        ]
    variable = {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"}
    return {
        "uid": f"virt-steward-{name}",
        "title": dashboard.title,
        "tags": ["virt-steward"],
        "editable": False,
        "schemaVersion": 39,
        "refresh": "1m",
        "time": {"from": "now-3h", "to": "now"},
        "templating": {"list": [variable]},
        "panels": [{"id": number, **panel} for number, panel in enumerate(panels, start=1)],
    }


def perses_dashboards(datasource: str) -> dict[str, Object]:
    """The `spec` of a PersesDashboard for each dashboard, by name."""
    return {name: _for_perses(dashboard, datasource) for name, dashboard in dashboards().items()}


def _for_perses(dashboard: Dashboard, datasource: str) -> Object:
    return {
        "display": {"name": dashboard.title},
        "duration": "3h",
        "panels": {panel.key: _perses_panel(panel, datasource) for row in dashboard.rows for panel in row.panels},
        "layouts": [
            {
                "kind": "Grid",
                "spec": {
                    "display": {"title": row.title, "collapse": {"open": True}},
                    "items": [
                        {
                            "x": column * row.width,
                            "y": 0,
                            "width": row.width,
                            "height": HEIGHT,
                            "content": {"$ref": f"#/spec/panels/{panel.key}"},
                        }
                        for column, panel in enumerate(row.panels)
                    ],
                },
            }
            for row in dashboard.rows
        ],
    }


def _perses_panel(panel: Panel, datasource: str) -> Object:
    source = {"kind": "PrometheusDatasource", "name": datasource}
    chart = {"legend": {"position": "bottom"}, "yAxis": {"format": {"unit": panel.unit}}}
    queries = [
        {
            "kind": "TimeSeriesQuery",
            "spec": {
                "plugin": {
                    "kind": "PrometheusTimeSeriesQuery",
                    "spec": {"datasource": source, "query": query.expr, "seriesNameFormat": query.legend},
                }
            },
        }
        for query in panel.queries
    ]
    plugin = {"kind": "TimeSeriesChart", "spec": chart}
    return {"kind": "Panel", "spec": {"display": {"name": panel.title}, "plugin": plugin, "queries": queries}}
