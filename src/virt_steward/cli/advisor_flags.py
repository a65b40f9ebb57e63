"""Options of the advisor: which platform it tunes, and which version its plans record."""

from __future__ import annotations

from typing import Annotated

import typer

from virt_steward.controllers.advisor.options import AdvisorOptions
from virt_steward.objects.identity import Key
from virt_steward.settings import BadSetting

PANEL = "Plans"
_USUAL = AdvisorOptions()

HcoOption = Annotated[
    str,
    typer.Option(
        "--hyperconverged",
        metavar="NAMESPACE/NAME",
        help="The HyperConverged object of the platform.",
        rich_help_panel=PANEL,
    ),
]
VersionOption = Annotated[
    str,
    typer.Option(
        metavar="VERSION",
        help="Version recorded in plans; a plan of another version is offered an upgrade.",
        rich_help_panel=PANEL,
    ),
]
DocsOption = Annotated[str, typer.Option(metavar="URL", help="Documentation of the profiles.", rich_help_panel=PANEL)]

HCO = str(_USUAL.hco)
VERSION = _USUAL.operator_version
DOCS = _USUAL.docs_url


def hco(text: str) -> Key:
    """Read which HyperConverged is meant."""
    key = Key.parse(text)
    if not key.namespace or not key.name or "/" in key.name:
        raise BadSetting(f"--hyperconverged {text!r}: write its namespace and name, such as {HCO}")
    return key


def options(hyperconverged: str, operator_version: str, docs_url: str, namespace: str) -> AdvisorOptions:
    """Check that the platform is named in full."""
    key = hco(hyperconverged)
    if not operator_version:
        raise BadSetting(f"--operator-version: a version has a name, such as {VERSION}")
    return AdvisorOptions(operator_version, key, namespace, docs_url.rstrip("/"))


def asking(hyperconverged: str, operator_version: str = VERSION) -> AdvisorOptions:
    """For commands that ask what the advisor would do, and so need no more."""
    return options(hyperconverged, operator_version, DOCS, _USUAL.namespace)
