"""From a page to HTML. All values are escaped; no template marks one as safe."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from virt_steward.console import paths
from virt_steward.console.pictures.mosaic import outline
from virt_steward.objects.counts import count_of
from virt_steward.objects.wallclock import rfc3339

if TYPE_CHECKING:
    from collections.abc import Mapping

    from virt_steward.console.page_context import PageContent, PageContext
    from virt_steward.console.sessions import Note
    from virt_steward.objects.identity import Kind

STATIC = {
    "console.css": "text/css",
    "pictures.css": "text/css",
    "console.js": "text/javascript",
    "icon.svg": "image/svg+xml",
}
NAV = (
    ("overview", "/", "Overview"),
    ("inbox", "/inbox", "Inbox"),
    ("profiles", "/profiles", "Profiles"),
    ("autopilot", "/autopilot", "Autopilot"),
    ("approvals", "/approvals", "Approvals"),
    ("placement", "/placement", "Placement"),
    ("activity", "/activity", "Activity"),
)


@dataclass(frozen=True, slots=True)
class Frame:
    """What surrounds a page."""

    csrf: str
    theme: str
    note: Note | None
    address: str
    """The path of the page, with its query."""
    cluster: str


@dataclass(frozen=True, slots=True)
class PageParts:
    """The parts of a page that live updates send."""

    title: str
    nav: str
    page: str


@cache
def static(name: str) -> bytes:
    return (resources.files("virt_steward.console") / "static" / name).read_bytes()


@cache
def static_path(name: str) -> str:
    """With a digest of the content, so that browsers may cache it for ever."""
    return f"/static/{name}?v={hashlib.blake2b(static(name), digest_size=8).hexdigest()}"


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("virt_steward.console"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(static=static_path, paths=paths, rfc3339=rfc3339, plural=count_of)
    environment.globals.update(outline=outline, duration=_duration)
    return environment


def load_templates() -> None:
    """Compile all templates, which takes longer than a page may hold the event loop. For a thread."""
    for name in _environment().list_templates(extensions=["html"]):
        _environment().get_template(name)


def whole(context: PageContext, page: PageContent, nav: str, frame: Frame) -> str:
    return _rendered("layout.html", _values(context, page, nav, frame))


def parts(context: PageContext, page: PageContent, nav: str, frame: Frame) -> PageParts:
    """The parts of a page that may change while it is open."""
    values = _values(context, page, nav, frame)
    return PageParts(f"{page.title} · virt-steward", _rendered("nav.html", values), _rendered("content.html", values))


def plain(template: str, **values: Any) -> str:
    """A page without a viewer: sign-in and errors."""
    return _rendered(template, values)


def _rendered(template: str, values: Mapping[str, Any]) -> str:
    return _environment().get_template(template).render(values)


def _values(context: PageContext, page: PageContent, nav: str, frame: Frame) -> dict[str, Any]:
    return {
        **page.values,
        "page": page,
        "frame": frame,
        "user": context.user,
        "search": context.search,
        "now": context.now,
        "nav": NAV,
        "here": nav,
        "counts_by_page": _counts(context),
        "trouble": context.cache.trouble(),
        "standing_by": context.standing_by,
        "freezes": context.freezes,
        "still_reading": context.cache.still_reading(),
        "denied": sorted((_named(kind), sorted(places)) for kind, places in context.cache.denied().items()),
        "hidden_kinds": [_named(kind) for kind in page.kinds if not context.scope.covers(kind)],
        "visible_namespaces": {_named(kind): sorted(context.scope.within.get(kind, ())) for kind in page.kinds},
    }


def _counts(context: PageContext) -> dict[str, int]:
    """How many items of each page need a person."""
    counts = dict.fromkeys((name for name, _, _ in NAV), 0)
    for item in context.inbox_items:
        counts[paths.page_of_inbox_item(item)] += 1
    counts["approvals"] = len(context.held_plans)
    return counts | {"inbox": len(context.inbox_items) + len(context.held_plans)}


def _named(kind: Kind) -> str:
    return f"{kind.plural}.{kind.group}" if kind.group else kind.plural


def _duration(seconds: float) -> str:
    """For people: 45 s, 3 min 20 s, 2 h 5 min."""
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if minutes else f"{rest} s"
    return f"{minutes // 60} h {minutes % 60} min"
