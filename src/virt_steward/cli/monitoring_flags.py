"""Options of `virt-steward manifests` on how the installation is monitored."""

from __future__ import annotations

from typing import Annotated

import typer

from virt_steward.objects.identity import Key
from virt_steward.packaging.monitoring import MonitoringApis, MonitoringOptions
from virt_steward.settings import BadSetting

_USUAL = MonitoringOptions()

ApisOption = Annotated[
    MonitoringApis | None,
    typer.Option(
        help="Include alerts and the ServiceMonitor, which need the CRDs of the Prometheus operator; "
        "all: also dashboards for Perses. Default: prometheus with --for olm, else none.",
        show_default=False,
    ),
]
PrometheusOption = Annotated[
    str,
    typer.Option(
        metavar="NAMESPACE/NAME", help="The ServiceAccount of Prometheus, which may discover and scrape the pods."
    ),
]
RunbooksOption = Annotated[
    str,
    typer.Option(
        metavar="URL",
        help="Where the runbooks of alerts are: a folder, or a URL in which %s stands for the name of the alert.",
    ),
]

PROMETHEUS = str(_USUAL.prometheus)
RUNBOOKS = _USUAL.runbooks


def monitoring_options(apis: MonitoringApis | None, prometheus: str, runbooks: str, *, olm: bool) -> MonitoringOptions:
    account = Key.parse(prometheus)
    if not account.namespace or not account.name or "/" in account.name:
        raise BadSetting(f"--prometheus {prometheus!r}: write namespace and name of a ServiceAccount, as {PROMETHEUS}")
    if not runbooks:
        raise BadSetting("--runbooks is empty: name a folder, or a URL with %s")
    if olm and apis is MonitoringApis.ALL:
        raise BadSetting(
            "--for olm --monitoring all: OLM installs no objects of Perses; "
            "use --monitoring prometheus, and apply deploy/monitoring/perses besides"
        )
    usual = MonitoringApis.PROMETHEUS if olm else MonitoringApis.NONE
    return MonitoringOptions(apis or usual, account, runbooks)
