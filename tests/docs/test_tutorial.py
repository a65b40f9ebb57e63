"""The tutorial is the demo: what it says to type is what the demo prints, and its buttons are in the console."""

import re

from tests.docs.blocks import DOCS, ROOT, blocks_of

PAGE = DOCS / "tutorial.md"
CONSOLE = ROOT / "src" / "virt_steward"


def test_commands_of_kubectl_are_those_that_the_demo_prints() -> None:
    source = (ROOT / "demo/src/virt_steward_demo/cli/demo.py").read_text().replace("\\\\\n", " ")
    printed = " ".join(source.replace("{{", "{").replace("}}", "}").split())
    typed = [line for block in blocks_of(PAGE) for line in block.text.splitlines() if line.startswith("kubectl")]
    assert len(typed) == printed.count(" kubectl ")
    assert not [line for line in typed if " ".join(line.split()) not in printed]


def test_buttons_and_pages_are_in_the_console() -> None:
    shown = "".join(path.read_text() for path in (*CONSOLE.rglob("*.html"), *CONSOLE.rglob("*.py")))
    named = set(re.findall(r"\*\*([^*]+)\*\*", PAGE.read_text()))
    assert len(named) > 8
    assert not {label for label in named if label not in shown}
