"""From a page to HTML: every value is text unless a template says otherwise, and no template does."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from virt_steward.console import paths
from virt_steward.objects.wallclock import rfc3339

if TYPE_CHECKING:
    from collections.abc import Mapping

    from virt_steward.console.page_context import PageContent, PageContext
    from virt_steward.console.sessions import Note
    from virt_steward.objects.identity import Kind

STATIC = {"console.css": "text/css", "console.js": "text/javascript", "icon.svg": "image/svg+xml"}
NAV = (
    ("inbox", "/", "Inbox"),
    ("profiles", "/profiles", "Profiles"),
    ("autopilot", "/autopilot", "Autopilot"),
    ("approvals", "/approvals", "Approvals"),
    ("placement", "/placement", "Placement"),
    ("activity", "/activity", "Activity"),
)


@dataclass(frozen=True, slots=True)
class Frame:
    """What stands around a page."""

    csrf: str
    theme: str
    note: Note | None
    address: str
    """Of the page itself, with its query."""
    cluster: str


@dataclass(frozen=True, slots=True)
class PageParts:
    """A page as a stream of changes sends it."""

    title: str
    nav: str
    page: str


@cache
def static(name: str) -> bytes:
    return (resources.files("virt_steward.console") / "static" / name).read_bytes()


@cache
def static_path(name: str) -> str:
    """With a digest of the content, so that browsers may keep it for ever."""
    return f"/static/{name}?v={hashlib.blake2b(static(name), digest_size=8).hexdigest()}"


@cache
def _environment() -> Environment:
    found = Environment(
        loader=PackageLoader("virt_steward.console"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.globals.update(static=static_path, paths=paths, rfc3339=rfc3339, plural=_plural)
    return found


def whole(visit: PageContext, page: PageContent, nav: str, frame: Frame) -> str:
    return _rendered("layout.html", _values(visit, page, nav, frame))


def parts(visit: PageContext, page: PageContent, nav: str, frame: Frame) -> PageParts:
    """The parts of a page that may change while somebody looks at it."""
    values = _values(visit, page, nav, frame)
    return PageParts(f"{page.title} · virt-steward", _rendered("nav.html", values), _rendered("content.html", values))


def plain(template: str, **values: Any) -> str:
    """A page without a viewer: signing in, and what went wrong before."""
    return _rendered(template, values)


def _rendered(template: str, values: Mapping[str, Any]) -> str:
    return _environment().get_template(template).render(values)


def _values(visit: PageContext, page: PageContent, nav: str, frame: Frame) -> dict[str, Any]:
    return {
        **page.values,
        "page": page,
        "frame": frame,
        "user": visit.user,
        "words": visit.words,
        "now": visit.now,
        "nav": NAV,
        "here": nav,
        "counts_by_page": _counts(visit),
        "trouble": visit.cache.trouble(),
        "still_reading": visit.cache.still_reading(),
        "denied": sorted((_named(kind), sorted(places)) for kind, places in visit.cache.denied().items()),
        "lacking": [_named(kind) for kind in page.missing if visit.sight.lacks(kind)],
        "partly": {_named(kind): sorted(visit.sight.within.get(kind, ())) for kind in page.missing},
    }


def _counts(visit: PageContext) -> dict[str, int]:
    """How much waits on each page."""
    counts = dict.fromkeys((name for name, _, _ in NAV), 0)
    for matter in visit.matters:
        counts[paths.of_matter(matter).split("/")[1]] += 1
    counts["approvals"] = len(visit.held)
    return counts | {"inbox": len(visit.matters) + len(visit.held)}


def _named(kind: Kind) -> str:
    return f"{kind.plural}.{kind.group}" if kind.group else kind.plural


def _plural(count: int, word: str) -> str:
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"
