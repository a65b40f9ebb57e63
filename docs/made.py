"""What the source makes: objects of our classes with the texts of their fields, found by static analysis.

An object is of interest for the texts in it: `Occurrence(config, "Warning", reason, note)`. A text need not stand in
the call itself. A name is followed to the assignments in the same function that reach the call, to a
constant of that name, and to what a function returns, if it is a call of one of ours. A function that passes its
arguments on, such as `_event(config, reason, note)` to `Occurrence`, counts as that class.
"""  # noqa: INP001 - beside a script

from __future__ import annotations

import ast
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TEXT_FIELDS = ("message", "note", "why", "because", "remedy", "title")
REASON = "reason"
ROOT_ERROR = "UserError"
PACKAGE = "virt_steward"
DEEPEST = 3
"""How many calls a text is followed through."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Value:
    """An expression, and where its names are to be looked up."""

    node: ast.expr
    scope: ast.AST


@dataclass(frozen=True, slots=True)
class Made:
    """One object of a class that holds text, as the source makes it."""

    maker: str
    module: str
    inside: str
    """The class whose method makes it."""
    values: dict[str, Value]


@dataclass(frozen=True, slots=True)
class Forwarder:
    """A function that makes such an object of its arguments."""

    made: Made
    parameters: list[str]


@dataclass(slots=True)
class Source:
    """What is known of all modules, by plain names: class names are unique, other names nearly so."""

    fields: dict[str, list[str]] = field(default_factory=dict)
    bases: dict[str, set[str]] = field(default_factory=dict)
    members: dict[str, str] = field(default_factory=dict)
    """Texts of enum members and class attributes, as `Class.NAME`."""
    attributes: dict[str, ast.expr] = field(default_factory=dict)
    """Class attributes that are no texts, as `Class.NAME`."""
    constants: dict[tuple[str, str], ast.expr] = field(default_factory=dict)
    """By module and name."""
    imports: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)
    """By module and name: the module and the name there."""
    modules: dict[ast.AST, str] = field(default_factory=dict)
    """The module of each scope: functions, and modules themselves."""
    owners: dict[ast.AST, str] = field(default_factory=dict)
    """The class of each method."""
    functions: dict[str, list[Function]] = field(default_factory=lambda: defaultdict(list))
    errors: set[str] = field(default_factory=set)
    methods: dict[str, Function] = field(default_factory=dict)
    """As `Class.name`."""
    forwarders: dict[tuple[str, str], Forwarder] = field(default_factory=dict)
    """By module and name; the module is empty for names that other modules import."""


def parsed(root: Path) -> dict[str, ast.Module]:
    return {_module(root, path): ast.parse(path.read_text()) for path in sorted(root.rglob("*.py"))}


def _module(root: Path, path: Path) -> str:
    return ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")


def collect(trees: dict[str, ast.Module]) -> Source:
    source = Source()
    for module, tree in trees.items():
        source.modules[tree] = module
        for node in tree.body:
            source.constants |= {(module, name): value for name, value in constants_in(node)}
        for node in ast.walk(tree):
            if isinstance(node, Function):
                source.functions[node.name].append(node)
                source.modules[node] = module
            elif isinstance(node, ast.ImportFrom) and node.module:
                there = node.module.removeprefix(f"{PACKAGE}.")
                source.imports |= {(module, one.asname or one.name): (there, one.name) for one in node.names}
            elif isinstance(node, ast.ClassDef):
                _collect_class(node, source)
    source.fields = {name: _inherited(name, source) for name in source.fields}
    source.errors = {ROOT_ERROR}
    while more := {name for name, bases in source.bases.items() if bases & source.errors} - source.errors:
        source.errors |= more
    for _ in range(DEEPEST):
        _collect_forwarders(source)
    return source


def constants_in(node: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    """The names and values that a statement assigns: `A = 1`, `A: int = 1`, `A, B = 1, 2`."""
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            yield name, value
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
            yield name, value
        case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
            yield from ((one.id, value) for one, value in zip(names, values, strict=True) if isinstance(one, ast.Name))


def documented(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """The constants of a module, each with the text below it; empty if there is none."""
    for node, after in zip(tree.body, [*tree.body[1:], None], strict=True):
        names = [name for name, _ in constants_in(node)]
        match after:
            case ast.Expr(value=ast.Constant(value=str(text))) if len(names) == 1:
                yield names[0], text
            case _:
                yield from ((name, "") for name in names)


def _collect_forwarders(source: Source) -> None:
    for function, module in source.modules.items():
        if not isinstance(function, Function):
            continue
        names = [one.arg for one in (*function.args.posonlyargs, *function.args.args) if one.arg != "self"]
        for made in made_in(function, source):
            shown = (made.values.get(one) for one in (REASON, *TEXT_FIELDS))
            passed = {one.node.id for one in shown if one and isinstance(one.node, ast.Name)}
            if REASON in made.values and passed & set(names):
                owner = module if function.name.startswith("_") else ""
                source.forwarders[owner, function.name] = Forwarder(made, names)


def made_in(scope: ast.AST, source: Source) -> Iterator[Made]:
    """The objects that hold text which a function or module makes, also by way of other functions."""
    module, inside = source.modules[scope], source.owners.get(scope, "")
    for call in calls_in(scope):
        name = last_name(call.func)
        if known := source.fields.get(name):
            given = dict(zip(known, call.args, strict=False)) | {one.arg: one.value for one in call.keywords if one.arg}
            yield Made(name, module, inside, {key: Value(node, scope) for key, node in given.items()})
        elif forwarder := source.forwarders.get((module, name)) or source.forwarders.get(("", name)):
            given = dict(zip(forwarder.parameters, call.args, strict=False))
            given |= {one.arg: one.value for one in call.keywords if one.arg}
            values = {key: _passed(value, given, scope) for key, value in forwarder.made.values.items()}
            yield Made(forwarder.made.maker, module, inside, values)


def _passed(value: Value, given: dict[str, ast.expr], scope: ast.AST) -> Value:
    if isinstance(value.node, ast.Name) and value.node.id in given:
        return Value(given[value.node.id], scope)
    return value


def texts_of(value: Value, source: Source) -> list[str]:
    """The texts that a value may be, with placeholders in braces."""
    return texts(value.node, value.scope, source, 0)


def _inherited(name: str, source: Source) -> list[str]:
    """The fields of a class, those of its bases first."""
    of_bases = [
        field for base in sorted(source.bases[name]) if base in source.bases for field in _inherited(base, source)
    ]
    return list(dict.fromkeys((*of_bases, *source.fields[name])))


def constant(name: str, scope: ast.AST, source: Source) -> list[ast.expr]:
    """The value of a constant that a module defines or imports."""
    place = (source.modules.get(scope, ""), name)
    while place not in source.constants and place in source.imports:
        place = source.imports[place]
    return [source.constants[place]] if place in source.constants else []


def _collect_class(node: ast.ClassDef, source: Source) -> None:
    source.bases[node.name] = {last_name(base) for base in node.bases}
    source.fields[node.name] = [
        one.target.id
        for one in node.body
        if isinstance(one, ast.AnnAssign)
        and isinstance(one.target, ast.Name)
        and "ClassVar" not in ast.dump(one.annotation)
    ]
    for one in node.body:
        if isinstance(one, Function):
            source.owners[one] = node.name
            source.methods[f"{node.name}.{one.name}"] = one
        if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name):
            name = f"{node.name}.{one.targets[0].id}"
            if isinstance(one.value, ast.Constant):
                source.members[name] = str(one.value.value)
            else:
                source.attributes[name] = one.value


@cache
def calls_in(scope: ast.AST) -> tuple[ast.Call, ...]:
    """The calls in a module or function, without those in functions inside of it, which are scopes of their own."""
    found: list[ast.Call] = []
    waiting = [*ast.iter_child_nodes(scope)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Call):
            found.append(node)
        if not isinstance(node, Function):
            waiting.extend(ast.iter_child_nodes(node))
    return tuple(sorted(found, key=lambda call: (call.lineno, call.col_offset)))


def texts(node: ast.expr | None, scope: ast.AST, source: Source, depth: int) -> list[str]:  # noqa: PLR0911 - a table by kind
    """The texts that an expression may stand for, with placeholders in braces."""
    if depth > DEEPEST:
        return []
    match node:
        case ast.Constant(value=str(text)):
            return [text]
        case ast.JoinedStr(values=values):
            return ["".join(_inlined(one, scope, source, depth) for one in values)]
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            heads, tails = (texts(one, scope, source, depth) or [f"{{{_placeholder(one)}}}"] for one in (left, right))
            return [f"{head}{tail}" for head in heads for tail in tails]
        case ast.IfExp(body=body, orelse=orelse):
            return texts(body, scope, source, depth) + texts(orelse, scope, source, depth)
        case ast.BoolOp(values=values):
            return [text for one in values for text in texts(one, scope, source, depth)]
        case ast.Attribute(value=ast.Name(id=owner), attr=attribute) if f"{owner}.{attribute}" in source.members:
            return [source.members[f"{owner}.{attribute}"]]
        case ast.Name(id=name):
            assigned = _assigned(name, scope, node.lineno)
            values = assigned or constant(name, scope, source)
            return [text for one in values for text in texts(one, scope, source, depth + 1)]
        case ast.Call(func=ast.Name(id=name)) if len(source.functions.get(name, ())) == 1:
            return returned(source.functions[name], source, depth + 1)
    return []


def _inlined(node: ast.expr, scope: ast.AST, source: Source, depth: int) -> str:
    """A piece of an f-string; a name that can only stand for one sentence is replaced by it."""
    if isinstance(node, ast.FormattedValue) and isinstance(node.value, ast.Name):
        match texts(node.value, scope, source, depth + 1):
            case [text] if " " in text:
                return text
    return _part(node)


def returned(functions: list[ast.stmt] | list[Function], source: Source, depth: int) -> list[str]:
    return [
        text
        for function in functions
        if isinstance(function, Function)
        for node in ast.walk(function)
        if isinstance(node, ast.Return)
        for text in texts(node.value, function, source, depth)
    ]


def _assigned(name: str, scope: ast.AST, line: int) -> list[ast.expr]:
    """What a name may be at a line of a function: the values of all assignments that reach it."""
    return _reaching(name, scope.body, line, []) if isinstance(scope, Function) else []


def _reaching(name: str, body: list[ast.stmt], line: int, before: list[ast.expr]) -> list[ast.expr]:
    """An assignment replaces those before it; after a branch, what was assigned in it or before it counts."""
    for statement in body:
        if statement.lineno > line:
            break
        blocks = list(_blocks(statement))
        around = [block for block in blocks if block[0].lineno <= line <= (block[-1].end_lineno or line)]
        outside = [node for part in _heads(statement) for node in ast.walk(part)]
        if values := [value for node in outside if (value := _value_for(name, node)) is not None]:
            before = values
        if around:
            return _reaching(name, around[0], line, before)
        branches = [_reaching(name, block, line, before) for block in blocks if not isinstance(block[-1], _LEAVING)]
        if branches and any(branch is not before for branch in branches):
            before = list(dict.fromkeys([*before, *(value for branch in branches for value in branch)]))
    return before


_LEAVING = (ast.Return, ast.Raise, ast.Continue, ast.Break)


def _blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    """The blocks inside of a statement."""
    for part in ("body", "orelse", "finalbody"):
        if not isinstance(statement, Function) and (block := getattr(statement, part, None)):
            yield block
    for part in ("handlers", "cases"):
        yield from (one.body for one in getattr(statement, part, ()))


def _heads(statement: ast.stmt) -> Iterator[ast.AST]:
    """A statement without its blocks."""
    if not list(_blocks(statement)):
        yield statement
        return
    for part in ("test", "iter", "subject", "items"):
        found = getattr(statement, part, ())
        yield from found if isinstance(found, list) else (found,) if found else ()


def _value_for(name: str, node: ast.AST) -> ast.expr | None:
    match node:
        case (
            ast.Assign(targets=[ast.Name(id=target)], value=value)
            | ast.NamedExpr(target=ast.Name(id=target), value=value)
        ) if target == name:
            return value
    return None


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


def last_name(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Subscript(value=value):
            return last_name(value)
    return ""
