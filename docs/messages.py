"""Find the messages that users read by static analysis of the source, for docs/reference/messages.md.

A message is a sentence in the source that ends up in one of these:

- the text of an error for users, a subclass of `UserError`;
- a field of one of our classes that holds text for people (`message`, `note`, `why`, ...), such as an event, a
  condition or a verdict; its `reason`, if the class has that field as well, is shown beside it;
- a constant or a function in a module named `messages`.

A sentence need not stand in the call itself. `Verdict(reason, message=text)` is followed to the assignments of `text`
in the same function, to a constant of that name, and to what a function returns, if `text` is a call of one of ours.
"""  # noqa: INP001 - beside a script

from __future__ import annotations

import ast
import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TEXT_FIELDS = ("message", "note", "why", "because", "remedy", "title")
REASON = "reason"
ROOT_ERROR = "UserError"
DEEPEST = 3
"""How many calls a text is followed through."""
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

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Message:
    group: str
    reason: str
    text: str
    module: str


@dataclass(slots=True)
class Source:
    """What is known of all modules, by plain names: class names are unique, other names nearly so."""

    fields: dict[str, list[str]] = field(default_factory=dict)
    bases: dict[str, set[str]] = field(default_factory=dict)
    members: dict[str, str] = field(default_factory=dict)
    """Texts of enum members and class attributes, as `Class.NAME`."""
    constants: dict[str, list[ast.expr]] = field(default_factory=lambda: defaultdict(list))
    functions: dict[str, list[Function]] = field(default_factory=lambda: defaultdict(list))
    errors: set[str] = field(default_factory=set)


def messages(root: Path) -> list[Message]:
    """All messages below a package's folder, by group, module and text."""
    trees = {_module(root, path): ast.parse(path.read_text()) for path in sorted(root.rglob("*.py"))}
    source = _collect(trees)
    found = {message for module, tree in trees.items() for message in _of_module(module, tree, source)}
    order = list(GROUPS)
    return sorted(found, key=lambda one: (order.index(one.group), one.module, one.text, one.reason))


def _module(root: Path, path: Path) -> str:
    return ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")


def _collect(trees: dict[str, ast.Module]) -> Source:
    source = Source()
    for tree in trees.values():
        for node in tree.body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                source.constants[node.targets[0].id].append(node.value)
        for node in ast.walk(tree):
            if isinstance(node, Function):
                source.functions[node.name].append(node)
            elif isinstance(node, ast.ClassDef):
                _collect_class(node, source)
    source.errors = {ROOT_ERROR}
    while more := {name for name, bases in source.bases.items() if bases & source.errors} - source.errors:
        source.errors |= more
    return source


def _collect_class(node: ast.ClassDef, source: Source) -> None:
    source.bases[node.name] = {_last_name(base) for base in node.bases}
    source.fields[node.name] = [
        one.target.id for one in node.body if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
    ]
    for one in node.body:
        if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name) and isinstance(one.value, ast.Constant):
            source.members[f"{node.name}.{one.targets[0].id}"] = str(one.value.value)


def _of_module(module: str, tree: ast.Module, source: Source) -> Iterator[Message]:
    group = _group(module)
    for scope in (tree, *(node for node in ast.walk(tree) if isinstance(node, Function))):
        for call in _calls(scope):
            place = RBAC if _last_name(call.func) == "Grant" else group
            for reason, text in _of_call(call, scope, source):
                yield Message(place, reason, text, module)
    if module.rpartition(".")[2] == "messages":
        for node in tree.body:
            value = node.value if isinstance(node, ast.Assign) else None
            texts = _texts(value, tree, source, 0) if value else _returned([node], source, 0)
            yield from (Message(group, "", text, module) for text in texts if _is_sentence(text))


def _group(module: str) -> str:
    found = [
        (len(prefix), group)
        for group, prefixes in GROUPS.items()
        for prefix in prefixes
        if f"{module}.".startswith(f"{prefix}.")
    ]
    return max(found)[1] if found else "Command line"


def _calls(scope: ast.AST) -> Iterator[ast.Call]:
    """The calls in a module or function, without those in functions inside of it, which are scopes of their own."""
    for node in ast.iter_child_nodes(scope):
        if isinstance(node, Function):
            continue
        if isinstance(node, ast.Call):
            yield node
        yield from _calls(node)


def _of_call(call: ast.Call, scope: ast.AST, source: Source) -> Iterator[tuple[str, str]]:
    """The reason and the text of each message that a call makes."""
    name = _last_name(call.func)
    if name in source.errors and name not in source.fields.keys() - source.errors:
        for text in _texts(call.args[0], scope, source, 0) if call.args else ():
            if _is_sentence(text):
                yield "", text
        return
    known = source.fields.get(name)
    if not known:
        return
    given = dict(zip(known, call.args, strict=False)) | {one.arg: one.value for one in call.keywords if one.arg}
    wanted = [one for one in TEXT_FIELDS if one in known]
    codes = [""]
    if REASON in known and set(wanted) <= {"title"}:  # then the reason is the text
        wanted.append(REASON)
    elif REASON in given:
        codes = _texts(given[REASON], scope, source, 0) or [""]
    for one in wanted:
        for text in _texts(given[one], scope, source, 0) if one in given else ():
            if _is_sentence(text):
                yield codes[0] if len(codes) == 1 and " " not in codes[0] else "", text


def _texts(node: ast.expr | None, scope: ast.AST, source: Source, depth: int) -> list[str]:  # noqa: PLR0911 - a table by kind
    """The texts that an expression may stand for, with placeholders in braces."""
    if depth > DEEPEST:
        return []
    match node:
        case ast.Constant(value=str(text)):
            return [text]
        case ast.JoinedStr(values=values):
            return ["".join(_part(one) for one in values)]
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            heads, tails = (_texts(one, scope, source, depth) or [f"{{{_placeholder(one)}}}"] for one in (left, right))
            return [f"{head}{tail}" for head in heads for tail in tails]
        case ast.IfExp(body=body, orelse=orelse):
            return _texts(body, scope, source, depth) + _texts(orelse, scope, source, depth)
        case ast.BoolOp(values=values):
            return [text for one in values for text in _texts(one, scope, source, depth)]
        case ast.Attribute(value=ast.Name(id=owner), attr=attribute) if f"{owner}.{attribute}" in source.members:
            return [source.members[f"{owner}.{attribute}"]]
        case ast.Name(id=name):
            assigned = _assigned(name, scope)
            values = assigned or source.constants.get(name, [])
            return [text for one in values for text in _texts(one, scope, source, depth + 1)]
        case ast.Call(func=ast.Name(id=name)) if len(source.functions.get(name, ())) == 1:
            return _returned(source.functions[name], source, depth + 1)
    return []


def _returned(functions: list[ast.stmt] | list[Function], source: Source, depth: int) -> list[str]:
    return [
        text
        for function in functions
        if isinstance(function, Function)
        for node in ast.walk(function)
        if isinstance(node, ast.Return)
        for text in _texts(node.value, function, source, depth)
    ]


def _assigned(name: str, scope: ast.AST) -> list[ast.expr]:
    found: list[ast.expr] = []
    for node in ast.walk(scope) if isinstance(scope, Function) else ():
        match node:
            case (
                ast.Assign(targets=[ast.Name(id=target)], value=value)
                | ast.NamedExpr(target=ast.Name(id=target), value=value)
            ) if target == name:
                found.append(value)
    return found


def _part(node: ast.expr) -> str:
    """A piece of an f-string. What is there only sometimes is in brackets: `deleted[ by {user}]`."""
    match node:
        case ast.Constant(value=value):
            return str(value)
        case ast.FormattedValue(value=ast.IfExp(body=body, orelse=orelse)):
            texts = [_literal(one) for one in (body, orelse)]
            if "" in texts:
                return f"[{''.join(texts)}]"
            return "/".join(texts)
        case ast.FormattedValue(value=value):
            return f"{{{_placeholder(value)}}}"
    return "{value}"


def _literal(node: ast.expr) -> str:
    match node:
        case ast.Constant(value=value):
            return str(value)
        case ast.JoinedStr(values=values):
            return "".join(_part(one) for one in values)
    return f"{{{_placeholder(node)}}}"


def _placeholder(node: ast.AST) -> str:  # noqa: PLR0911 - a table by kind
    """A short name for an expression: `{', '.join(plan.csvs)}` becomes `{csvs}`."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(attr=name):
            return name
        case ast.Constant(value=value):
            return str(value)
        case ast.Call(args=[one, *_]):
            return _placeholder(one)
        case ast.Call(func=function):
            return _placeholder(function)
        case ast.GeneratorExp(generators=[ast.comprehension(iter=source), *_]):
            return _placeholder(source)
        case ast.Subscript(value=value) | ast.Starred(value=value) | ast.BoolOp(values=[value, *_]):
            return _placeholder(value)
        case ast.BinOp(left=left):
            return _placeholder(left)
    return "value"


def _last_name(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Subscript(value=value):
            return _last_name(value)
    return ""


def _is_sentence(text: str) -> bool:
    """Text without words of its own is passed on from elsewhere, and a single word is a name."""
    return len(re.findall(r"[A-Za-z]{2,}", re.sub(r"\{[^}]*\}", " ", text))) >= FEWEST_WORDS
