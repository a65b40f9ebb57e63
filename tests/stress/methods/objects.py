"""The objects of an installation as they are in a cluster, without what only says which tool has installed them."""

from typing import Any

from tests.olm.catalog import STEWARD
from virt_steward import __version__
from virt_steward.apis.crds import CRDS
from virt_steward.controllers import NAMES
from virt_steward.kube.client import Client
from virt_steward.objects.identity import ref_of
from virt_steward.objects.paths import leaves
from virt_steward.packaging.monitoring import MonitoringApis, MonitoringOptions
from virt_steward.packaging.parts import REPLICAS, InstallOptions, installed

Object = dict[str, Any]
Name = tuple[str, str, str]
"""Kind, namespace and name."""

OPTIONS = InstallOptions(monitoring=MonitoringOptions(MonitoringApis.ALL))
KINDS = {ref_of(obj).kind for objects in installed(OPTIONS).values() for obj in objects}
OF_KUBERNETES = ("default", "kube-root-ca.crt")
"""What Kubernetes itself creates in each namespace."""
MARKS = (
    "helm.sh/",
    "meta.helm.sh/",
    "app.kubernetes.io/managed-by",
    "deployment.kubernetes.io/",
    "olm.",
    "operators.coreos.com/",
    "operatorframework.io/",
    "kubernetes.io/metadata.name",
    "capabilities",  # annotations of the ClusterServiceVersion, which OLM copies to pods
    "categories",
)
"""Prefixes of labels and annotations by which tools know what is theirs."""
HCO = "--hyperconverged=openshift-cnv/kubevirt-hyperconverged"
"""The chart says it where others leave it to the default."""
CONDITION = "OPERATOR_CONDITION_NAME"
"""A variable that OLM adds to each container."""


async def live_objects(client: Client) -> dict[Name, Object]:
    """All objects of the kinds of an installation, but for those that Kubernetes makes by itself."""
    found = {}
    for kind in KINDS:
        for obj in await client.list(kind):
            metadata = obj["metadata"]
            if metadata["name"] not in OF_KUBERNETES:
                found[kind.name, metadata.get("namespace", ""), metadata["name"]] = obj
    return found


def is_role_of_controller(name: Name) -> bool:
    """Compared as rights instead: OLM makes roles of its own."""
    kind, _, called = name
    return "Role" in kind and called.startswith(tuple(f"virt-steward-{one}" for one in NAMES))


def is_role_of_olm(name: Name) -> bool:
    """Made for our CSV, for the kinds that it owns, or for an OperatorGroup."""
    kind, _, called = name
    owned = (f"{crd.kind.plural}.{crd.kind.group}-" for crd in CRDS)
    return "Role" in kind and called.startswith((STEWARD.csv(__version__), "olm.og.", *owned))


def content(obj: Object) -> Object:
    """What matters of it."""
    metadata = {part: _unmarked(obj["metadata"].get(part)) for part in ("labels", "annotations")}
    rest = {key: value for key, value in obj.items() if key not in ("metadata", "status", "apiVersion", "kind")}
    if rest.get("spec", {}).get("template"):
        rest["spec"] = _deployment(rest["spec"])
    return {"metadata": metadata, **rest}


def _unmarked(values: Object | None) -> Object:
    return {name: value for name, value in (values or {}).items() if not name.startswith(MARKS)}


def _deployment(spec: Object) -> Object:
    template = spec["template"]
    metadata = template["metadata"]
    template["metadata"] = {part: _unmarked(metadata.get(part)) for part in ("labels", "annotations")}
    [container] = template["spec"]["containers"]
    container["args"] = sorted(one for one in container["args"] if one != HCO)
    container["env"] = [one for one in container["env"] if one["name"] != CONDITION]
    return {**spec, "replicas": spec["replicas"] or REPLICAS}  # the catalog of the tests asks OLM for no pods


def differences(mine: dict[Name, Object], theirs: dict[Name, Object]) -> set[str]:
    """The kinds of objects, and the paths below which they are not the same."""
    found = set()
    for name in mine.keys() & theirs.keys():
        one, other = (
            {str(path): value for path, value in leaves(of[name]) if value not in ({}, [])} for of in (mine, theirs)
        )
        paths = (path for path in one.keys() | other.keys() if one.get(path) != other.get(path))
        found |= {f"{name[0]} {path}" for path in paths}
    return found
