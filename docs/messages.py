"""The messages that users read, for docs/reference/messages.md.

A message is a sentence in the source that ends up in one of these:

- the text of an error for users, a subclass of `UserError`;
- a field of one of our classes that holds text for people (`message`, `note`, `why`, ...), such as an event, a
  condition or a verdict; its `reason`, if the class has that field as well, is shown beside it;
- a constant or a function in a module named `messages`.
"""  # noqa: INP001 - beside a script

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from made import REASON, TEXT_FIELDS, calls_in, last_name, made_in, returned, texts, texts_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from made import Made, Source

FEWEST_WORDS = 2

GROUPS = {
    "Advisor": ("controllers.advisor", "plans", "platform"),
    "Autopilot": ("controllers.autopilot", "catalog", "insight.assets"),
    "Approver": ("controllers.approver",),
    "Placement": ("controllers.placement",),
    "Console": ("console", "decisions"),
    "Connecting to a cluster": ("kube", "ssa"),
    "Command line": ("cli", "insight", "settings", "packaging", "runtime", "app", "objects", "controllers", "apis"),
    "Reasons of RBAC rules, in manifests": (),
}
"""Where users see the messages of a package; the longest prefix counts."""

RBAC = list(GROUPS)[-1]


@dataclass(frozen=True, slots=True)
class Message:
    group: str
    reason: str
    text: str
    module: str
    maker: str = ""
    """The class that holds it, such as `Occurrence`; empty for errors and modules of messages."""


def messages(trees: Mapping[str, ast.Module], source: Source) -> list[Message]:
    """All messages of these modules, by group, module and text."""
    found = {message for scope in source.modules for message in _of_scope(scope, source)}
    found |= {message for module, tree in trees.items() for message in _of_module(module, tree, source)}
    order = list(GROUPS)
    return sorted(found, key=lambda one: (order.index(one.group), one.module, one.text, one.reason))


def _of_scope(scope: ast.AST, source: Source) -> Iterator[Message]:
    module = source.modules[scope]
    group = _group(module)
    for text in _of_errors(scope, source):
        yield Message(group, "", text, module)
    for made in made_in(scope, source):
        place = RBAC if made.maker == "Grant" else group
        for reason, text in _of_made(made, source):
            yield Message(place, reason, text, module, made.maker)


def _of_module(module: str, tree: ast.Module, source: Source) -> Iterator[Message]:
    """The constants and functions of a module named `messages`."""
    if module.rpartition(".")[2] != "messages":
        return
    for node in tree.body:
        value = node.value if isinstance(node, ast.Assign) else None
        found = texts(value, tree, source, 0) if value else returned([node], source, 0)
        yield from (Message(_group(module), "", text, module) for text in found if _is_sentence(text))


def _group(module: str) -> str:
    found = [
        (len(prefix), group)
        for group, prefixes in GROUPS.items()
        for prefix in prefixes
        if f"{module}.".startswith(f"{prefix}.")
    ]
    return max(found)[1] if found else "Command line"


def _of_errors(scope: ast.AST, source: Source) -> Iterator[str]:
    for call in calls_in(scope):
        name = last_name(call.func)
        if name in source.errors and name not in source.fields.keys() - source.errors and call.args:
            yield from filter(_is_sentence, texts(call.args[0], scope, source, 0))


def _of_made(made: Made, source: Source) -> Iterator[tuple[str, str]]:
    """The reason and the text of each message in it."""
    if made.maker in source.errors:
        return
    known = source.fields[made.maker]
    wanted = [one for one in TEXT_FIELDS if one in known]
    codes = [""]
    if REASON in known and set(wanted) <= {"title"}:  # then the reason is the text
        wanted.append(REASON)
    elif REASON in made.values:
        codes = texts_of(made.values[REASON], source) or [""]
    for one in wanted:
        for text in texts_of(made.values[one], source) if one in made.values else ():
            if _is_sentence(text):
                yield codes[0] if len(codes) == 1 and " " not in codes[0] else "", text


def _is_sentence(text: str) -> bool:
    """Text without words of its own is passed on from elsewhere, and a single word is a name."""
    return len(re.findall(r"[A-Za-z]{2,}", re.sub(r"\{[^}]*\}", " ", text))) >= FEWEST_WORDS
