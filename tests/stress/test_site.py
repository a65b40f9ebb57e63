"""`make docs` builds the site of the documentation, strictly, and it needs nothing from elsewhere."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
LOADED = re.compile(r"""<(?:script|img|iframe|link)[^>]* (?:src|href)="?(https?:[^">]+)""")
IN_STYLES = re.compile(r"""(?:url\(|@import )["']?(https?:[^"')]+)""")


def test_make_docs_builds_a_site_that_loads_nothing_from_elsewhere() -> None:
    made = subprocess.run(["make", "docs"], cwd=ROOT, capture_output=True, check=False, text=True)
    assert made.returncode == 0, made.stderr
    assert "WARNING" not in made.stderr
    pages = list((ROOT / "site").rglob("*.html"))
    assert len(pages) > 90
    assert not {url for page in pages for url in LOADED.findall(page.read_text())}
    assert not {url for style in (ROOT / "site").rglob("*.css") for url in IN_STYLES.findall(style.read_text())}
    assert (ROOT / "site" / "search" / "search_index.json").stat().st_size > 100_000
