"""The CRDs that other projects ship, where a folder has them; a fresh clone has only the stubs of the demo.

They are other people's files and no part of this repository. The folder is VIRT_STEWARD_CRDS, or `../shared/crds`
beside the checkout. Where it has no file for a kind, tests use the stub, so that nothing is skipped.
"""

import os
import re
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tests.assets.contexts import stub

FOLDER = Path(os.environ.get("VIRT_STEWARD_CRDS") or Path(__file__).parents[2] / "shared" / "crds")

Object = dict[str, Any]


@cache
def _files() -> list[str]:
    return [path.read_text() for path in sorted(FOLDER.glob("*.yaml"))]


def releases_of(crd: str) -> list[Object]:
    """All releases of a CRD that the folder has, in the order of their files; else the stub."""
    named = re.compile(rf"^ *name: {re.escape(crd)}$", re.MULTILINE)
    return [yaml.load(text, Loader=yaml.CSafeLoader) for text in _files() if named.search(text)] or [stub(crd)]


def served_in(definition: Object, version: str) -> Object:
    """The CRD with one version, since nothing runs its webhook for conversions."""
    versions = [
        one | {"served": one["name"] == version, "storage": one["name"] == version}
        for one in definition["spec"]["versions"]
    ]
    spec = {name: value for name, value in definition["spec"].items() if name != "conversion"} | {"versions": versions}
    metadata = {"name": definition["metadata"]["name"], "annotations": definition["metadata"].get("annotations") or {}}
    return {"apiVersion": definition["apiVersion"], "kind": definition["kind"], "metadata": metadata, "spec": spec}
