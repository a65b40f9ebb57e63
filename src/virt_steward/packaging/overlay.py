"""The installation with one Deployment for all controllers, as a kustomize overlay of the base."""

from __future__ import annotations

from typing import TYPE_CHECKING

from virt_steward.controllers import NAMES
from virt_steward.objects.yamltext import yaml_text
from virt_steward.packaging.parts import NOTICE, Object, documents, installed, together
from virt_steward.runtime.access import ALL_IN_ONE, RBAC

if TYPE_CHECKING:
    from virt_steward.packaging.parts import InstallOptions

OF_ONE_CONTROLLER = {
    "ServiceAccount": "v1",
    "Deployment": "apps/v1",
    "PodDisruptionBudget": "policy/v1",
    "ClusterRoleBinding": f"{RBAC}/v1",
    "RoleBinding": f"{RBAC}/v1",
}
"""The kinds that each controller has for itself, unless one Deployment runs all of them, with their versions."""


def all_in_one_overlay(options: InstallOptions) -> dict[str, str]:
    """The files of the overlay: text by name."""
    objects = [obj for obj in installed(together(options))[ALL_IN_ONE] if obj["kind"] in OF_ONE_CONTROLLER]
    listing = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": ["../base", f"{ALL_IN_ONE}.yaml"],
        "patches": [_deletion(kind, version) for kind, version in OF_ONE_CONTROLLER.items()],
    }
    return {"kustomization.yaml": NOTICE + documents([listing]), f"{ALL_IN_ONE}.yaml": NOTICE + documents(objects)}


def _deletion(kind: str, version: str) -> Object:
    """A patch that deletes all objects of this kind that belong to a controller."""
    selector = f"app.kubernetes.io/component in ({','.join(NAMES)})"
    patch = {"$patch": "delete", "apiVersion": version, "kind": kind, "metadata": {"name": "any"}}
    return {"target": {"kind": kind, "labelSelector": selector}, "patch": yaml_text(patch)}
