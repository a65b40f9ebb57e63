"""The structure of the site, without building it; tests/stress builds it."""

import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.docs.blocks import DOCS, ROOT, pages

TITLE = re.compile(r"^(<!-- .* -->\n)?# \S")


@pytest.fixture(scope="module")
def structure() -> Iterator[ModuleType]:
    sys.path.insert(0, str(DOCS))
    yield importlib.import_module("site_structure")
    sys.path.remove(str(DOCS))
    sys.modules.pop("site_structure")


def pages_in(nav: Any) -> Iterator[str]:
    match nav:
        case str():
            yield nav
        case list() | tuple():
            for one in nav:
                yield from pages_in(one)
        case dict():
            yield from pages_in(list(nav.values()))


def test_navigation_has_every_page_once(structure: ModuleType) -> None:
    shown = list(pages_in(structure.navigation()))
    top = {page.name for page in ROOT.glob("*.md")}
    assert top == set(structure.TOP)
    assert sorted(shown) == sorted(
        {*(str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")), *structure.TOP.values()}
    )


def test_navigation_skips_pages_that_are_not_there(structure: ModuleType) -> None:
    section = structure.SiteSection("How-to", "howto", ("no-such-page", "install"))
    assert structure.pages_of(section)[0] == "howto/install.md"


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_page_begins_with_its_title(page: Path) -> None:
    assert TITLE.match(page.read_text())


def test_links_out_of_site_lose_their_target(structure: ModuleType) -> None:
    assert structure.place_in_site(ROOT / "README.md") == "index.md"
    assert structure.place_in_site(DOCS / "howto" / "install.md") == "howto/install.md"
    assert structure.place_in_site(DOCS / "decisions").startswith("decisions/0001")
    assert structure.place_in_site(ROOT / "LICENSE") == ""
    assert structure.place_in_site(DOCS / "generate.py") == ""
