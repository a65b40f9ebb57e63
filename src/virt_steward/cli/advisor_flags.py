"""Options of the advisor: the platform that it tunes, the version that its plans record, the example profile."""

from __future__ import annotations

from typing import Annotated

import typer

from virt_steward.cli import completion
from virt_steward.controllers.advisor.options import AdvisorOptions
from virt_steward.objects.identity import Key
from virt_steward.settings import BadSetting

_USUAL = AdvisorOptions()

HcoOption = Annotated[
    str,
    typer.Option(
        "--hyperconverged",
        metavar="NAMESPACE/NAME",
        help="The HyperConverged object of the platform.",
        autocompletion=completion.platforms,
    ),
]
VersionOption = Annotated[
    str,
    typer.Option(
        metavar="VERSION",
        help="Version recorded in plans; a plan of another version is offered an upgrade.",
    ),
]
DocsOption = Annotated[
    str,
    typer.Option(
        metavar="URL",
        help="Base URL of the profiles' documentation, for the annotation documentation-url.",
        show_default=False,
    ),
]
ExampleOption = Annotated[
    bool,
    typer.Option(
        "--example-profile",
        help="Turn on example-profile, which writes a ConfigMap, to try the workflow.",
    ),
]

HCO = str(_USUAL.hco)
VERSION = _USUAL.operator_version
DOCS = _USUAL.docs_url


def hco(text: str) -> Key:
    """Parse --hyperconverged."""
    key = Key.parse(text)
    if not key.namespace or not key.name or "/" in key.name:
        raise BadSetting(f"--hyperconverged {text!r}: write its namespace and name, such as {HCO}")
    return key


def options(
    hyperconverged: str, operator_version: str, docs_url: str, namespace: str, *, example_profile: bool = False
) -> AdvisorOptions:
    """Raises BadSetting if the platform or the version is not named in full."""
    key = hco(hyperconverged)
    if not operator_version:
        raise BadSetting(f"--operator-version is empty: write a version, such as {VERSION}")
    return AdvisorOptions(operator_version, key, namespace, docs_url.rstrip("/"), example_profile=example_profile)


def asking(
    hyperconverged: str,
    operator_version: str = VERSION,
    namespace: str = _USUAL.namespace,
    *,
    example_profile: bool = False,
) -> AdvisorOptions:
    """The options of commands that only ask what the advisor would do."""
    return options(hyperconverged, operator_version, DOCS, namespace, example_profile=example_profile)
