"""The house rules that a machine can check."""

import ast
import importlib
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from virt_steward.controllers import NAMES

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "virt_steward"
DEMO = ROOT / "demo" / "src" / "virt_steward_demo"
LONGEST_MODULE = 400
ASSETS = "src/virt_steward/assets/"
"""Not checked for words: another text of a script that is written to nodes reboots them."""

BANNED = (
    "teller",
    "wishes",
    "deeds",
    "doings",
    "burial",
    "outlook",
    "foretells?",
    "foretold",
    "asleep",
    "as you wish",
    "ways? back",
    "set(s|ting)? right",
    "no longer as applied",
    "carr(y|ies|ied) (it |them )?out",
    "is left alone",
    "c[ao]mes? true",
    "whoever",
    "wished",
    "mend(s|ed|ing)?",
    "told",
    "companions?",
)
"""Words and phrases that the vocabulary replaces, as regular expressions."""
LOCKS = (
    "requirements/dev.txt",
    "requirements/docs.txt",
    "requirements/run.txt",
    "requirements/uv.txt",
    "controlplane/toolchain.txt",
)

REGISTRIES = re.compile(
    r"pypi\.(org|io)|pythonhosted\.|(proxy|sum)\.golang\.|npmjs\.|https?://\S*/simple\b", re.IGNORECASE
)
MACHINE_PATHS = re.compile(r"(?<![\w.$}/~*-])/(work|root|home|tmp)\b")
PATH = re.compile(r"`((?:[\w.-]+/)+[\w.-]*)`")
LINK = re.compile(r"\]\(([^)#:]+)\)")
ANCHOR = re.compile(r"\]\(([^)#:]*)#([^)]+)\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
NOT_A_FILE = re.compile(r"[a-z0-9.-]+\.(io|cloud|com)/|[A-Z]+/[A-Z]+|[a-z]+/status$|openshift-cnv/")
"""Keys of annotations and labels, placeholders, subresources and names of objects are written as paths, too."""
MADE_BY_THE_READER = {"scheduling/virt-priority/asset.yaml", "scheduling/virt-priority/object.yaml.j2"}
"""Files that a how-to tells its reader to create."""


@cache
def text_files() -> dict[str, str]:
    """Everything that is or would be committed, pictures aside, by its path."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listing, cwd=ROOT, capture_output=True, check=True, text=True).stdout.split("\0")
    return {name: (ROOT / name).read_text() for name in names if (ROOT / name).is_file() and not name.endswith(".png")}


PAGES = sorted(name for name in text_files() if name.endswith(".md"))


def modules() -> dict[str, str]:
    return {name: text for name, text in text_files().items() if name.endswith(".py")}


@cache
def targets() -> frozenset[str]:
    phony = re.search(r"^\.PHONY:(.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert phony
    return frozenset(phony[1].split())


def lines_with(pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{name}:{number}"
        for name, text in text_files().items()
        for number, line in enumerate(text.splitlines(), start=1)
        if pattern.search(line)
    ]


def test_modules_have_at_most_400_lines() -> None:
    assert not {name for name, text in modules().items() if len(text.splitlines()) > LONGEST_MODULE}


def test_modules_have_a_docstring() -> None:
    ours = {name: text for name, text in modules().items() if name.startswith("src/")}
    assert not {name for name, text in ours.items() if not ast.get_docstring(ast.parse(text))}


@pytest.mark.parametrize(
    "name", sorted(name for name in modules() if name.startswith(("tests/bench/", "tests/stress/", "tests/helm/")))
)
def test_bench_and_stress_modules_can_be_imported(name: str) -> None:
    importlib.import_module(name.removesuffix(".py").removesuffix("/__init__").replace("/", "."))


def test_modules_have_specific_names() -> None:
    assert not {name for name in modules() if Path(name).stem in {"utils", "util", "helpers", "common", "misc"}}


@pytest.mark.parametrize(
    "pattern",
    [pytest.param(REGISTRIES, id="a-package-registry"), pytest.param(MACHINE_PATHS, id="a-path-of-a-machine")],
)
def test_files_mention_no_registry_or_machine_path(pattern: re.Pattern[str]) -> None:
    assert not lines_with(pattern)


@pytest.mark.parametrize("lock", LOCKS)
def test_lock_pins_every_package_by_version_and_hash(lock: str) -> None:
    text = re.sub(r"^\s*#.*\n?", "", text_files()[lock], flags=re.MULTILINE)
    pinned = re.split(r"\n(?=\S)", text.strip())
    assert not [
        entry for entry in pinned if not re.match(r"[\w.\[\]-]+==\S+.*\\\n(\s+--hash=sha256:\w{64}( \\)?\n?)+$", entry)
    ]


def test_make_help_lists_every_target() -> None:
    shown = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, check=True, text=True).stdout
    assert set(re.findall(r"^\s*make (\S+)", shown, re.MULTILINE)) == targets()


@pytest.mark.parametrize("page", PAGES)
def test_page_names_make_targets_that_exist(page: str) -> None:
    named = set(re.findall(r"`make (?:\w+=\S+ )*([a-z]+)", text_files()[page]))
    assert named <= targets()


@pytest.mark.parametrize("page", PAGES)
def test_page_links_to_files_that_exist(page: str) -> None:
    folder = (ROOT / page).parent
    assert not [target for target in LINK.findall(text_files()[page]) if not (folder / target).exists()]


@pytest.mark.parametrize("page", PAGES)
def test_page_links_to_headings_that_exist(page: str) -> None:
    folder = (ROOT / page).parent
    linked = [
        (folder / target if target else ROOT / page, anchor) for target, anchor in ANCHOR.findall(text_files()[page])
    ]
    assert not [(target.name, anchor) for target, anchor in linked if anchor not in anchors(target.read_text())]


def anchors(text: str) -> set[str]:
    """The anchors that GitHub makes of headings."""
    return {re.sub(r"[^\w -]", "", heading.strip().lower()).replace(" ", "-") for heading in HEADING.findall(text)}


@pytest.mark.parametrize("page", PAGES)
def test_page_names_files_that_exist(page: str) -> None:
    named = {name for name in PATH.findall(text_files()[page]) if not NOT_A_FILE.match(name)} - MADE_BY_THE_READER
    places = (ROOT, SOURCE, DEMO, (ROOT / page).parent)
    assert not {name for name in named if not any((place / name).exists() for place in places)}


def test_pictures_are_used() -> None:
    pages = {ROOT / name: text for name, text in text_files().items() if name.endswith(".md")}
    shown = {(page.parent / target).resolve() for page, text in pages.items() for target in LINK.findall(text)}
    assert {picture.resolve() for picture in (ROOT / "docs" / "pictures").iterdir()} <= shown


def test_architecture_names_every_layer() -> None:
    layers = {init.parent.name for init in SOURCE.glob("*/__init__.py")} | {
        path.name for path in SOURCE.glob("[!_]*.py")
    }
    cells = re.findall(r"^\| (`.*?) \|", text_files()["ARCHITECTURE.md"], re.MULTILINE)
    assert {name for cell in cells for name in re.findall(r"`(.+?)`", cell)} == layers


def test_readme_says_which_problem_each_controller_solves() -> None:
    assert set(re.findall(r"^\| \".+\" \| \*\*(\w+)\*\*: ", text_files()["README.md"], re.MULTILINE)) == set(NAMES)


def test_reference_is_up_to_date() -> None:
    command = [sys.executable, "docs/generate.py", "--check"]
    checked = subprocess.run(command, cwd=ROOT, capture_output=True, check=False, text=True)
    assert checked.returncode == 0, checked.stderr


@cache
def trees() -> dict[str, ast.Module]:
    return {name: ast.parse(text) for name, text in modules().items() if name.startswith(("src/", "demo/src/"))}


def test_class_names_are_unique() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for name, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(name)
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


def words_of(node: ast.AST) -> Iterator[str]:
    """The text of a string, or the words of an identifier."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield " ".join(node.value.split())
    for field in ("name", "id", "attr", "arg"):
        if isinstance(value := getattr(node, field, None), str):
            yield re.sub(r"(?<=[a-z])(?=[A-Z])|_", " ", value)


def test_source_uses_no_banned_word() -> None:
    banned = re.compile(rf"\b({'|'.join(BANNED)})\b", re.IGNORECASE)
    found = {
        f"{name}:{getattr(node, 'lineno', 1)}: {hit[0]}"
        for name, tree in trees().items()
        if name.startswith("src/") and not name.startswith(ASSETS)
        for node in ast.walk(tree)
        for text in words_of(node)
        if (hit := banned.search(text))
    }
    assert sorted(found) == []
