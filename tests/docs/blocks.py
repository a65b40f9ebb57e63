"""The code blocks of the documentation, and what is said directly above them."""

import re
import shlex
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from textwrap import dedent

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
FENCE = re.compile(r"^(?P<indent> *)```(?P<language>\w*)\n(?P<text>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL)
EXCERPT = re.compile(r"<!-- excerpt: (.+) -->")
INDENTED = re.compile(r"^(?![ \-*\d>]).*\n\n {4}\S", re.MULTILINE)
"""A block without a fence, after a paragraph that is no part of a list."""

FOLLOWED = {
    "CONTRIBUTING.md": "tests/test_recipes.py",
    "docs/howto/add-an-asset.md": "tests/catalog/test_add_an_asset.py",
    "docs/howto/switch-from-the-go-advisor.md": "tests/controllers/advisor/test_switch_over.py",
    "docs/howto/switch-from-the-go-approver.md": "tests/controllers/approver/test_switch_over.py",
    "docs/howto/switch-from-the-go-autopilot.md": "tests/controllers/autopilot/test_switchover.py",
    "docs/howto/switch-from-vitistack-placement.md": "tests/controllers/placement/test_switch_over.py",
}
"""Pages that a test of their own follows."""


@dataclass(frozen=True, slots=True)
class Block:
    page: str
    line: int
    language: str
    text: str
    excerpt: str
    """Why it is not executed; empty if it is."""

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def commands(self) -> list[str]:
        """Its lines, without comments and without those that only set a variable."""
        lines = self.text.replace("\\\n", " ").splitlines()
        bare = (shlex.join(shlex.split(line, comments=True)) for line in lines if not line.startswith("#"))
        return [line for line in bare if line and not re.match(r"[A-Z_]+=\S*$", line)]


@cache
def pages() -> tuple[Path, ...]:
    generated = DOCS / "reference"
    found = (path for path in DOCS.rglob("*.md") if not path.is_relative_to(generated))
    return tuple(sorted((*found, *ROOT.glob("*.md"))))


def blocks_of(path: Path) -> list[Block]:
    text = path.read_text()
    found = []
    for match in FENCE.finditer(text):
        above = text[: match.start()].rstrip("\n").rpartition("\n")[2].strip()
        excerpt = EXCERPT.fullmatch(above)
        line = text.count("\n", 0, match.start()) + 1
        reason = excerpt[1] if excerpt else ""
        page = str(path.relative_to(ROOT))
        found.append(Block(page, line, match["language"], dedent(match["text"]), reason))
    return found


@cache
def executed() -> tuple[Block, ...]:
    """All blocks that are neither an excerpt nor followed by a test of their own."""
    found = (block for path in pages() for block in blocks_of(path))
    return tuple(block for block in found if not block.excerpt and block.page not in FOLLOWED)
