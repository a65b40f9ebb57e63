"""Write docs/reference from the code. `--check` only reports what is out of date."""  # noqa: INP001 - a script

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from annotations_page import annotations
from asset_pages import assets
from command_line import command_line, exit_codes, settings
from json_page import json_page, schemas
from kinds import kinds
from made import collect, parsed
from messages import GROUPS, Message, messages
from monitoring_pages import alerts, metrics
from reason_pages import conditions, events
from roles_page import roles
from tables import NOTICE, escaped, table

import virt_steward

SOURCE = Path(virt_steward.__file__).parent
REFERENCE = Path(__file__).with_name("reference")
MESSAGES = """# Messages

Conditions, events, errors and explanations as users read them, by where they are seen. Search this page for a message
to find the module that it comes from. `{name}` is a value, and what is in `[brackets]` is not always there.
"""


def main() -> None:
    pages = {name: page() for name, page in _pages().items()} | schemas()
    if "--check" in sys.argv:
        stale = [name for name, text in pages.items() if _current(name) != text]
        sys.exit(f"out of date, run 'make docs': {', '.join(stale)}" if stale else 0)
    for name, text in pages.items():
        (REFERENCE / name).parent.mkdir(exist_ok=True)
        (REFERENCE / name).write_text(text)


def _pages() -> Mapping[str, Callable[[], str]]:
    trees = parsed(SOURCE)
    source = collect(trees)
    found = messages(trees, source)
    return {
        "cli.md": command_line,
        "settings.md": settings,
        "exit-codes.md": exit_codes,
        "json.md": json_page,
        "kinds.md": kinds,
        "roles.md": roles,
        "assets.md": assets,
        "annotations.md": lambda: annotations(trees),
        "conditions.md": lambda: conditions(trees, source),
        "events.md": lambda: events(source, found),
        "metrics.md": lambda: metrics(trees),
        "alerts.md": alerts,
        "messages.md": lambda: _messages(found),
    }


def _current(name: str) -> str:
    page = REFERENCE / name
    return page.read_text() if page.exists() else ""


def _messages(found: list[Message]) -> str:
    sections = [
        f"\n## {group}\n\n{table(('message', 'reason', 'module'), rows)}"
        for group in GROUPS
        if (rows := [(escaped(one.text), one.reason, f"`{one.module}`") for one in found if one.group == group])
    ]
    return f"{NOTICE}{MESSAGES}{''.join(sections)}"


if __name__ == "__main__":
    main()
