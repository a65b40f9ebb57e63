"""What OLM and its catalog server are built from."""

import dataclasses
import hashlib
import json
import platform
import sys
from dataclasses import dataclass
from pathlib import Path

from virt_steward_demo.local import LocalError
from virt_steward_demo.local.build import BuildSteps, go_build

FLAGS = ("-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-tags=json1,containers_image_openpgp")
DEFINITIONS = "crds"


@dataclass(frozen=True, slots=True)
class Patch:
    """A line that is changed before the build."""

    file: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Tree:
    """A module that is built as the main one, since only then its own pins of dependencies count."""

    module: str
    version: str
    checksum: str
    """Of all its files, go.sum with the checksums of the dependencies included."""
    commands: tuple[str, ...]
    loopback_only: Patch
    """Neither module has an option for the address that it listens on."""


LIFECYCLE_MANAGER = Tree(
    module="github.com/operator-framework/operator-lifecycle-manager",
    version="v0.42.0",
    checksum="h1:4mmPYowf6LmLe8r9sfdakVC/X/K6PqxpUULj6YIEi00=",
    commands=("catalog", "olm"),
    loopback_only=Patch("pkg/lib/server/server.go", 'return ":8080"', 'return "127.0.0.1:0"'),
)
REGISTRY = Tree(
    module="github.com/operator-framework/operator-registry",
    version="v1.65.0",
    checksum="h1:SBNp8qPRWHwMVk4WBBWeQ5pOAq/fBusacIn5zVH03rk=",
    commands=("opm",),
    loopback_only=Patch(
        "cmd/opm/serve/serve.go",
        'net.Listen("tcp", ":"+s.port)',
        'net.Listen("tcp", "127.0.0.1:"+s.port)',
    ),
)
TREES = (LIFECYCLE_MANAGER, REGISTRY)


@dataclass(frozen=True, slots=True)
class Recipe:
    """The programs of all trees, and OLM's definitions beside them."""

    toolchain: Path

    @property
    def name(self) -> str:
        ingredients = repr((TREES, FLAGS)).encode() + self.toolchain.read_bytes()
        return f"olm-{hashlib.sha256(ingredients).hexdigest()[:16]}-{sys.platform}-{platform.machine()}"

    @property
    def product(self) -> str:
        return "the Operator Lifecycle Manager"

    @property
    def headline(self) -> str:
        return f"{self.product} {LIFECYCLE_MANAGER.version} (about 5 minutes on two cores, once)"

    @property
    def sources(self) -> Path:
        return Path(__file__).parent

    def compile(self, go: Path, scratch: Path, steps: BuildSteps) -> Path:
        programs = scratch / "programs"
        programs.mkdir()
        outside = dataclasses.replace(steps, folder=scratch)  # of any module, which a download could change
        for tree in TREES:
            folder = scratch / tree.version
            _copy(_download(tree, go, outside), folder)
            _change(folder / tree.loopback_only.file, tree.loopback_only)
            packages = [f"./cmd/{command}" for command in tree.commands]
            go_build(go, [*FLAGS, "-o", f"{programs}/"], packages, dataclasses.replace(steps, folder=folder))
        _copy(scratch / LIFECYCLE_MANAGER.version / "deploy" / "chart" / "crds", programs / DEFINITIONS)
        return programs


def _download(tree: Tree, go: Path, steps: BuildSteps) -> Path:
    """Answer the module's folder in Go's cache, if its content is what we pinned."""
    phase = f"downloading {tree.module}"
    printed = steps.run(phase, [str(go), "mod", "download", "-json", f"{tree.module}@{tree.version}"])
    found = json.loads("\n".join(line for line in printed if not line.startswith("go: ")))
    if found["Sum"] != tree.checksum:
        raise LocalError(
            f"{phase}: its checksum is {found['Sum']}, not {tree.checksum}: see who changed {tree.version}"
        )
    return Path(found["Dir"])


def _copy(source: Path, target: Path) -> None:
    """Copy content only: in Go's cache everything is read-only."""
    for path in source.rglob("*"):
        if path.is_file():
            copy = target / path.relative_to(source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(path.read_bytes())


def _change(path: Path, patch: Patch) -> None:
    text = path.read_text()
    if text.count(patch.before) != 1:
        raise LocalError(f"{patch.file} has not exactly one {patch.before!r}: adapt the patch to this version")
    path.write_text(text.replace(patch.before, patch.after))
