"""An installation as a base for kustomize."""

from __future__ import annotations

from typing import TYPE_CHECKING

from virt_steward.packaging.files import NOTICE, documents
from virt_steward.packaging.parts import installed, monitor

if TYPE_CHECKING:
    from virt_steward.packaging.parts import InstallOptions


def monitoring(wishes: InstallOptions) -> dict[str, str]:
    """What the operator of Prometheus needs to be told, where there is one."""
    return {"servicemonitor.yaml": NOTICE + documents([monitor(wishes.installation)])}


def kustomization(wishes: InstallOptions) -> dict[str, str]:
    """The files, by name."""
    files = {f"{topic}.yaml": objects for topic, objects in installed(wishes).items()}
    listing = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [*files],
    }
    return {name: NOTICE + documents(objects) for name, objects in {**files, "kustomization.yaml": [listing]}.items()}
