"""Loads a catalog: folders with an asset.yaml each, and the tombstones of obsolete objects."""

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
"""Label on a managed object: the field manager of the autopilot. An object without it is never deleted."""
MANAGER = AUTOPILOT.name
PLURAL = "platform.kubevirt.io/plural"
"""On a tombstone: the plural of its kind, if no asset has that kind any more."""
REPLACED_BY = "platform.kubevirt.io/replaced-by"
"""On a tombstone: the asset that does now what the object did. The object is deleted once that asset is settled."""


class CatalogError(UserError):
    """An invalid asset or tombstone: the message names the file and the problem."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}")


@dataclass(frozen=True, slots=True)
class Tombstone:
    """An object that earlier releases created and that is to be deleted."""

    ref: Ref
    api_version: str
    path: str
    replaced_by: str = ""
    """The name of an asset; empty if none does what the object did."""


@dataclass(frozen=True)
class Catalog:
    """All assets in the order in which they are applied, and all tombstones."""

    assets: tuple[Asset, ...]
    tombstones: tuple[Tombstone, ...] = ()

    def find(self, name: str) -> Asset | None:
        return next((asset for asset in self.assets if asset.name == name), None)

    def names_of(self, kind: Kind) -> frozenset[str]:
        """The names of our objects of a kind, obsolete ones too."""
        obsolete = (stone.ref.key.name for stone in self.tombstones if stone.ref.kind == kind)
        return frozenset((*obsolete, *(asset.object.name for asset in self.assets if asset.object.kind == kind)))

    def replaced_by(self, asset: str) -> tuple[Tombstone, ...]:
        """Return the tombstones of what this asset replaces."""
        return tuple(stone for stone in self.tombstones if stone.replaced_by == asset)

    @cached_property
    def needs(self) -> Needs:
        return Needs.union(asset.needs for asset in self.assets)


def load(root: Traversable | None = None) -> Catalog:
    """Load the catalog below a folder; without one, the shipped catalog."""
    base = resources.files("virt_steward.assets") if root is None else root
    found = sorted(_assets(base), key=lambda asset: (asset.phase, asset.order, asset.name))
    _refuse_duplicates(found)
    plurals = {asset.object.kind: asset.object.kind.plural for asset in found}
    catalog = Catalog(tuple(found), tuple(_tombstones(base / TOMBSTONES, TOMBSTONES, plurals)))
    for stone in catalog.tombstones:
        if stone.replaced_by and not catalog.find(stone.replaced_by):
            raise CatalogError(stone.path, f"there is no asset {stone.replaced_by}, which should replace it")
    return catalog


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
        raise CatalogError(
            f"{path}{MANIFEST}", f"its name is {declared.name!r}; it must be that of its folder, {folder.name!r}"
        )
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
    """Find the folder of a file: the asset's own, or that of its topic if assets of that topic share the file."""
    return folder if (folder / name).is_file() else topic


def _text(folder: Traversable, name: str, path: str) -> str:
    if "/" in name or not (folder / name).is_file():
        raise CatalogError(f"{path}{name}", "not found in the folder of the asset or of its topic")
    return (folder / name).read_text(encoding="utf-8")


def _refuse_duplicates(assets: list[Asset]) -> None:
    """Two assets with the same name, or for the same object, would overwrite each other."""
    names: dict[str, Asset] = {}
    objects: dict[tuple[str, str, str], Asset] = {}
    for asset in assets:
        target = asset.object
        other = names.setdefault(asset.name, asset)
        if other is not asset:
            raise CatalogError(asset.path, f"duplicate name {asset.name}: also in {other.path}")
        other = objects.setdefault((str(target.kind), target.namespace, target.name), asset)
        if other is not asset:
            raise CatalogError(asset.path, f"duplicate object: also in {other.path}")


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
        raise CatalogError(path, "a tombstone must be one object with apiVersion, kind and metadata.name") from None
    if (metadata.get("labels") or {}).get(MANAGED_BY) != MANAGER:  # a mistake must not delete what was never ours
        raise CatalogError(path, f"a tombstone must carry the label {MANAGED_BY}: {MANAGER}")
    annotations = metadata.get("annotations") or {}
    plural = annotations.get(PLURAL) or plurals.get(kind)
    if not plural:
        raise CatalogError(path, f"no asset has the kind {kind}: set its plural in the annotation {PLURAL}")
    return Tombstone(Ref(replace(kind, plural=plural), key), obj["apiVersion"], path, annotations.get(REPLACED_BY, ""))


def _sorted(folder: Traversable) -> list[Traversable]:
    return sorted(folder.iterdir(), key=lambda entry: entry.name)
