"""Hooks of mkdocs: pages of the top folder, the navigation, and links that are right on Git hosts and in the site."""  # noqa: INP001 - loaded by mkdocs

from __future__ import annotations

import re
import sys
from pathlib import Path
from posixpath import dirname, relpath
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).parent))

from mkdocs.structure.files import File  # type: ignore[import-not-found]  # only `make docs` installs it
from site_structure import DOCS, ROOT, TOP, navigation, place_in_site

if TYPE_CHECKING:
    Config = Files = Page = Any

NOTICE = re.compile(r"\A<!--.*-->\n")
"""That a page is generated. In front of the title, mkdocs would not find that."""
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#:\s]+)(#[^)\s]*)?\)")


def on_config(config: Config) -> Config:
    config.nav = navigation()
    return config


def on_files(files: Files, config: Config) -> Files:
    for name, place in TOP.items():
        files.append(File.generated(config, place, content=(ROOT / name).read_text()))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Links are relative to the file of a page in the repository; here they become relative to its page in the site."""
    here = page.file.src_uri
    source = next((ROOT / name for name, place in TOP.items() if place == here), DOCS / here)

    def moved(link: re.Match[str]) -> str:
        picture, text, target, anchor = link[1], link[2], link[3], link[4] or ""
        there = (source.parent / target).resolve()
        if not there.exists():
            return link[0]  # so that mkdocs reports it
        place = place_in_site(there)
        if not place:
            return text  # a file of the source, which is not part of the site
        return f"{picture}[{text}]({relpath(place, dirname(here) or '.')}{anchor})"

    return LINK.sub(moved, NOTICE.sub("", markdown))
