"""Which pages the site has, and in which order. A page that no list names comes last in the section of its folder."""  # noqa: INP001 - beside a script

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).parent
ROOT = DOCS.parent
TOP = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "explanation/architecture.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security-policy.md",
}
"""Pages of the top folder, where Git hosts look for them, and where they are in the site."""


@dataclass(frozen=True, slots=True)
class SiteSection:
    title: str
    folder: str
    first: tuple[str, ...] = ()
    """The pages with which it begins, if they exist."""


SECTIONS = (
    SiteSection(
        "How-to",
        "howto",
        (
            *("install", "upgrade", "remove", "tune-the-platform", "override-the-autopilot", "stage-node-reboots"),
            *("hold-changes-back", "pin-an-operator", "place-a-machine", "several-clusters", "use-the-console"),
            *("notify-people", "read-the-metrics", "gitops", "back-up-and-restore", "add-an-asset"),
        ),
    ),
    SiteSection(
        "Reference",
        "reference",
        (
            *("cli", "settings", "exit-codes", "json", "kinds", "roles", "assets", "annotations", "conditions"),
            *("events", "metrics", "alerts", "messages", "glossary"),
        ),
    ),
    SiteSection(
        "Explanation", "explanation", ("which-controller", "architecture", "security", "comparison", "figures", "scale")
    ),
    SiteSection("Runbooks", "runbooks"),
    SiteSection("Decisions", "decisions"),
)

Nav = list[str | dict[str, "str | Nav"]]


def navigation() -> Nav:
    """All pages, in the form in which mkdocs takes them. Titles are those of the pages."""
    sections: Nav = [{section.title: [*map(str, pages_of(section))]} for section in SECTIONS]
    project: Nav = ["changelog.md", "contributing.md", "security-policy.md", "release.md"]
    return [{"Start": "index.md"}, {"Tutorial": "tutorial.md"}, *sections, {"Project": project}]


def pages_of(section: SiteSection) -> list[str]:
    here = {path.stem for path in (DOCS / section.folder).glob("*.md")}
    here |= {Path(page).stem for page in TOP.values() if page.startswith(f"{section.folder}/")}
    named = [name for name in section.first if name in here]
    return [f"{section.folder}/{name}.md" for name in (*named, *sorted(here - {*named}))]


def place_in_site(target: Path) -> str:
    """Where a file of the repository is in the site; empty if it is not part of it."""
    if target.is_relative_to(ROOT) and str(target.relative_to(ROOT)) in TOP:
        return TOP[str(target.relative_to(ROOT))]
    if target.is_dir() and target.is_relative_to(DOCS):
        section = next((one for one in SECTIONS if one.folder == target.name), None)
        return pages_of(section)[0] if section else ""
    is_page = target.is_relative_to(DOCS) and target.is_file() and target.suffix != ".py"
    return str(target.relative_to(DOCS)) if is_page else ""
