"""Reads a catalog: folders with an asset.yaml each, and the tombstones of what is wanted no more."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from importlib import resources
from typing import TYPE_CHECKING

import msgspec

from virt_steward.catalog.asset import Asset, Declaration
from virt_steward.catalog.reads import Needs
from virt_steward.catalog.yamlread import BadYaml, document
from virt_steward.objects.errors import UserError
from virt_steward.objects.identity import Ref, key_of, kind_of
from virt_steward.ssa.managers import AUTOPILOT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from importlib.resources.abc import Traversable

    from virt_steward.objects.identity import Kind

MANIFEST = "asset.yaml"
TEMPLATE = "object.yaml.j2"
TOMBSTONES = "tombstones"
MANAGED_BY = "platform.kubevirt.io/managed-by"
MANAGER = AUTOPILOT.name
PLURAL = "platform.kubevirt.io/plural"
"""On a tombstone: how RBAC names its kind, where no asset is of that kind any more."""


class CatalogError(UserError):
    """An asset or a tombstone that cannot be used: the text names the file, and what is wrong with it."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}")


@dataclass(frozen=True, slots=True)
class Tombstone:
    """An object that used to be wanted, and is to go."""

    ref: Ref
    api_version: str
    path: str


@dataclass(frozen=True)
class Catalog:
    """All assets in the order in which they are applied, and all tombstones."""

    assets: tuple[Asset, ...]
    tombstones: tuple[Tombstone, ...] = ()

    def find(self, name: str) -> Asset | None:
        return next((asset for asset in self.assets if asset.name == name), None)

    def names_of(self, kind: Kind) -> frozenset[str]:
        """What our objects of a kind are called."""
        return frozenset(asset.object.name for asset in self.assets if asset.object.kind == kind)

    @cached_property
    def needs(self) -> Needs:
        return Needs.union(asset.needs for asset in self.assets)


def load(root: Traversable | None = None) -> Catalog:
    """The catalog below a folder; without one, that which is shipped."""
    base = resources.files("virt_steward.assets") if root is None else root
    found = sorted(_assets(base), key=lambda asset: (asset.phase, asset.order, asset.name))
    _refuse_rivals(found)
    plurals = {asset.object.kind: asset.object.kind.plural for asset in found}
    return Catalog(tuple(found), tuple(_tombstones(base / TOMBSTONES, TOMBSTONES, plurals)))


def _assets(folder: Traversable, path: str = "") -> Iterator[Asset]:
    for entry in _sorted(folder):
        if not entry.is_dir() or entry.name in (TOMBSTONES, "__pycache__"):
            continue
        below = f"{path}{entry.name}/"
        if (entry / MANIFEST).is_file():
            yield _asset(entry, folder, below)
        else:
            yield from _assets(entry, below)


def _asset(folder: Traversable, topic: Traversable, path: str) -> Asset:
    declared = _declaration((folder / MANIFEST).read_text(encoding="utf-8"), f"{path}{MANIFEST}")
    if declared.name != folder.name:
        raise CatalogError(f"{path}{MANIFEST}", f"its name is {declared.name!r}, and that of its folder another")
    return Asset(
        **msgspec.structs.asdict(declared),
        template=_text(folder, TEMPLATE, path),
        contents={name: _text(_holder(name, folder, topic), name, path) for name in declared.files},
        path=f"{path}{TEMPLATE}",
    )


def _declaration(text: str, path: str) -> Declaration:
    try:
        return msgspec.convert(document(text), Declaration)
    except (BadYaml, msgspec.ValidationError) as error:
        raise CatalogError(path, str(error)) from None


def _holder(name: str, folder: Traversable, topic: Traversable) -> Traversable:
    """Where a file is: beside the template, or in the topic's folder if assets of that topic share it."""
    return folder if (folder / name).is_file() else topic


def _text(folder: Traversable, name: str, path: str) -> str:
    if "/" in name or not (folder / name).is_file():
        raise CatalogError(f"{path}{name}", "no such file in the asset's folder or its topic's")
    return (folder / name).read_text(encoding="utf-8")


def _refuse_rivals(assets: list[Asset]) -> None:
    """Two assets with one name, or for one object, would undo each other."""
    names: dict[str, Asset] = {}
    objects: dict[tuple[str, str, str], Asset] = {}
    for asset in assets:
        target = asset.object
        rival = names.setdefault(asset.name, asset)
        if rival is not asset:
            raise CatalogError(asset.path, f"there is another {asset.name}: {rival.path}")
        rival = objects.setdefault((str(target.kind), target.namespace, target.name), asset)
        if rival is not asset:
            raise CatalogError(asset.path, f"{rival.path} is for the same object")


def _tombstones(folder: Traversable, path: str, plurals: Mapping[Kind, str]) -> Iterator[Tombstone]:
    for entry in _sorted(folder) if folder.is_dir() else ():
        below = f"{path}/{entry.name}"
        if entry.is_dir():
            yield from _tombstones(entry, below, plurals)
        elif entry.name.endswith(".yaml"):
            yield _tombstone(entry.read_text(encoding="utf-8"), below, plurals)


def _tombstone(text: str, path: str, plurals: Mapping[Kind, str]) -> Tombstone:
    try:
        obj = document(text)
        kind, key, metadata = kind_of(obj), key_of(obj), obj["metadata"]
    except (BadYaml, KeyError, TypeError):
        raise CatalogError(path, "a tombstone is one object with apiVersion, kind and metadata.name") from None
    if (metadata.get("labels") or {}).get(MANAGED_BY) != MANAGER:  # lest a slip delete what was never ours
        raise CatalogError(path, f"a tombstone carries the label {MANAGED_BY}: {MANAGER}")
    plural = (metadata.get("annotations") or {}).get(PLURAL) or plurals.get(kind)
    if not plural:
        raise CatalogError(path, f"no asset is a {kind}: give the plural in the annotation {PLURAL}")
    return Tombstone(Ref(replace(kind, plural=plural), key), obj["apiVersion"], path)


def _sorted(folder: Traversable) -> list[Traversable]:
    return sorted(folder.iterdir(), key=lambda entry: entry.name)
