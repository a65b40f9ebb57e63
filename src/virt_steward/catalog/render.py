"""Renders an asset's object from its template: in a sandbox, from declared values alone, and validated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from jinja2 import StrictUndefined, TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from virt_steward.catalog.asset import SERVED
from virt_steward.catalog.context import NotDeclared
from virt_steward.catalog.filters import FILTERS, only_typed
from virt_steward.catalog.load import MANAGED_BY, MANAGER
from virt_steward.catalog.reads import HCO_NAMESPACE
from virt_steward.catalog.yamlread import document

if TYPE_CHECKING:
    from types import CodeType, TracebackType

    from virt_steward.catalog.asset import Asset
    from virt_steward.catalog.context import AssetContext
    from virt_steward.catalog.load import Catalog

# A template can fail in as many ways as an expression can.
FAILURES = (TemplateError, ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
_LONGEST_REASON = 400
"""Characters of an error that may quote what others wrote."""


@dataclass(frozen=True, slots=True)
class Rendered:
    """The object of the asset."""

    object: dict[str, Any]


@dataclass(frozen=True, slots=True)
class RenderedNothing:
    """The template is empty on this cluster."""


@dataclass(frozen=True, slots=True)
class RenderFailed:
    """The template, or the object that it renders, is invalid; or a setting is missing that only a person can make."""

    why: str
    code: str = ""
    """Names a missing setting for machines; empty if something else is wrong."""


Rendering = Rendered | RenderedNothing | RenderFailed


class SettingMissing(ValueError):
    """A template cannot go on without something that a person has to set."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code


class Renderer:
    """Renders the assets of a catalog, and compiles each template once."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self._environment = ImmutableSandboxedEnvironment(
            undefined=StrictUndefined,
            autoescape=False,  # that would be HTML; only_typed does the same for YAML
            finalize=only_typed,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,  # the last line may be part of a block of text
        )
        self._environment.filters |= FILTERS
        self._compiled: dict[str, CodeType] = {}
        self._last: dict[str, tuple[AssetContext, Rendering]] = {}

    def render(self, asset: Asset, context: AssetContext) -> Rendering:
        """Render the asset. The result is cached for the same context, so it must not be modified."""
        before, rendering = self._last.get(asset.path, (None, None))
        if before is not context or rendering is None:
            rendering = self._render(asset, context)
            self._last[asset.path] = context, rendering
        return rendering

    def _render(self, asset: Asset, context: AssetContext) -> Rendering:
        if lacking := context.lacks(asset):
            return RenderFailed(f"unknown: {', '.join(lacking)}")
        try:
            text = self._text(asset, context)
            found = document(text)
        except FAILURES as error:
            return RenderFailed(_sentence(error, asset.path), error.code if isinstance(error, SettingMissing) else "")
        if found is None:
            return RenderedNothing()
        if wrong := _mismatch(found, asset, context):
            return RenderFailed(f"{asset.path}: {wrong}")
        return Rendered(labelled(found))

    def _text(self, asset: Asset, context: AssetContext) -> str:
        if asset.path not in self._compiled:
            self._compiled[asset.path] = self._environment.compile(asset.template, asset.name, asset.path)
        template = self._environment.template_class.from_code(
            self._environment, self._compiled[asset.path], self._environment.make_globals(None)
        )
        return template.render(
            {**context.for_asset(asset), "asset": asset, "params": asset.params, "file": _files(asset), "fail": _fail}
        )


def _fail(code: str, message: str) -> NoReturn:
    raise SettingMissing(code, message)


def _files(asset: Asset) -> Any:
    def file(name: str) -> str:
        if name not in asset.contents:
            raise NotDeclared(f"{name} is not among the files of {asset.name}")
        return asset.contents[name]

    return file


def _mismatch(found: Any, asset: Asset, context: AssetContext) -> str:
    """Return the problem of a rendered object; empty if it is the one that the asset declares."""
    if not isinstance(found, dict) or not isinstance(found.get("metadata"), dict):
        return "it does not render an object"
    target, metadata = asset.object, found["metadata"]
    namespace = context.hco.namespace if target.namespace == HCO_NAMESPACE else target.namespace
    api_version = context.hco.api_version if target.api_version == SERVED else target.api_version
    name = context.hco.name if target.api_version == SERVED else target.name
    for field, wanted, actual in (
        ("apiVersion", api_version, found.get("apiVersion")),
        ("kind", target.kind.name, found.get("kind")),
        ("name", name, metadata.get("name")),
        ("namespace", namespace, metadata.get("namespace") or ""),
    ):
        if wanted != actual:
            return f"it renders the {field} {actual!r} instead of {wanted!r}"
    return ""


def labelled(obj: dict[str, Any]) -> dict[str, Any]:
    """Return the object with our managed-by label."""
    metadata = obj["metadata"]
    return obj | {"metadata": metadata | {"labels": {**(metadata.get("labels") or {}), MANAGED_BY: MANAGER}}}


def _sentence(error: BaseException, path: str) -> str:
    lines = [line for line in (getattr(error, "lineno", None), *_lines(error.__traceback__, path)) if line]
    why = " ".join(str(error)[:_LONGEST_REASON].split()) or type(error).__name__
    return f"{path}{f' line {lines[-1]}' if lines else ''}: {why}"


def _lines(traceback: TracebackType | None, path: str) -> list[int]:
    """Return the lines of the template where it happened, the outermost first."""
    found = []
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == path:
            found.append(traceback.tb_lineno)
        traceback = traceback.tb_next
    return found
