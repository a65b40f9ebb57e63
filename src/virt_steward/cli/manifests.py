"""`virt-steward manifests`: all that an installation is made of, also as files for kustomize, Helm or OLM."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path  # noqa: TC003 - typer reads annotations
from typing import Annotated

import typer

from virt_steward.cli import advisor_flags
from virt_steward.cli.generate import Format, FormatOption, written
from virt_steward.cli.output import CommandFailed
from virt_steward.packaging.bundle import bundle
from virt_steward.packaging.chart import chart
from virt_steward.packaging.parts import IMAGE, InstallOptions, installed, kustomization, monitoring
from virt_steward.runtime.access import NAMESPACE, Installation
from virt_steward.settings import BadSetting


class PackageFormat(StrEnum):
    """For whom the files are."""

    KUSTOMIZE = "kustomize"
    HELM = "helm"
    OLM = "olm"
    PROMETHEUS = "prometheus"


def manifests(
    *,
    namespace: Annotated[str, typer.Option(help="Where the controllers run.")] = NAMESPACE,
    image: Annotated[str, typer.Option(help="What they run from.")] = IMAGE,
    hyperconverged: advisor_flags.HcoOption = advisor_flags.HCO,
    example_profile: advisor_flags.ExampleOption = False,
    console: Annotated[bool, typer.Option("--console", help="Serve the console as well, in a pod of its own.")] = False,
    into: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Write files, and print nothing.", file_okay=False)
    ] = None,
    package: Annotated[
        PackageFormat,
        typer.Option("--for", help="With --into: a kustomization, a chart, a bundle, or what scrapes metrics."),
    ] = PackageFormat.KUSTOMIZE,
    output: FormatOption = Format.YAML,
) -> None:
    """Print namespace, CRDs, admission policies, and for each controller its rights and its Deployment."""
    wishes = InstallOptions(Installation(namespace), image, advisor_flags.hco(hyperconverged), console, example_profile)
    if into is not None:
        _write(into, files_of(package, wishes))
        return
    if package is not PackageFormat.KUSTOMIZE:
        raise BadSetting(f"--for {package} makes several files: say --into FOLDER, too")
    typer.echo(written([obj for objects in installed(wishes).values() for obj in objects], output), nl=False)


def files_of(package: PackageFormat, wishes: InstallOptions) -> dict[str, str]:
    match package:
        case PackageFormat.KUSTOMIZE:
            return kustomization(wishes)
        case PackageFormat.HELM:
            if wishes != InstallOptions():
                raise BadSetting("a chart leaves namespace, image and HyperConverged to its values: give none of them")
            return chart()
        case PackageFormat.OLM:
            return bundle(wishes)
        case PackageFormat.PROMETHEUS:
            return monitoring(wishes)


def _write(folder: Path, files: dict[str, str]) -> None:
    try:
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CommandFailed(f"{folder} cannot be written: {error.strerror}") from None
