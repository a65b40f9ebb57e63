"""The programs of the local control plane: from KUBEBUILDER_ASSETS, else from the cache, else built from source."""

import hashlib
import os
import platform
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from virt_steward_demo.local import LocalError
from virt_steward_demo.local.build import Builder, BuildSteps, PinnedGo, go_build
from virt_steward_demo.local.files import cache_folder
from virt_steward_demo.local.progress import ProgressPrinter

ASSETS = "KUBEBUILDER_ASSETS"
PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager")
BINARY = "controlplane"
SOURCE_FILES = ("go.mod", "go.sum", "main.go", "toolchain.txt")


@dataclass(frozen=True, slots=True)
class Binaries:
    """A folder with etcd, kube-apiserver and kube-controller-manager."""

    folder: Path

    def program(self, name: str) -> Path:
        return self.folder / name


@dataclass(frozen=True, slots=True)
class ControlPlaneRecipe:
    """A folder with a Go module of one command, and the pinned toolchain that builds it."""

    sources: Path

    @property
    def name(self) -> str:
        """The name changes with every source file, so a cached build of that name is never stale."""
        digest = hashlib.sha256()
        for source in SOURCE_FILES:
            content = (self.sources / source).read_bytes()
            digest.update(f"{source} {len(content)}\n".encode() + content)
        return f"{BINARY}-{digest.hexdigest()[:16]}-{sys.platform}-{platform.machine()}"

    @property
    def product(self) -> str:
        return "the control plane"

    @property
    def headline(self) -> str:
        return f"{self.product} {self.kubernetes_version} (about 5 minutes on two cores, once)"

    @property
    def toolchain(self) -> Path:
        return self.sources / "toolchain.txt"

    @property
    def kubernetes_version(self) -> str:
        found = re.search(r"^\s*k8s\.io/kubernetes (v\S+)$", (self.sources / "go.mod").read_text(), re.MULTILINE)
        if not found:
            raise LocalError(
                f"{self.sources}/go.mod requires no k8s.io/kubernetes: restore it or reinstall virt-steward-demo"
            )
        return found[1]

    def build_flags(self) -> list[str]:
        package, version = "k8s.io/component-base/version", self.kubernetes_version
        major, minor, _ = version.removeprefix("v").split(".", 2)
        values = {"gitVersion": version, "gitMajor": major, "gitMinor": minor}
        stamps = " ".join(f"-X {package}.{name}={value}" for name, value in values.items())
        return ["-trimpath", "-buildvcs=false", f"-ldflags=-s -w {stamps}"]

    def compile(self, go: Path, scratch: Path, steps: BuildSteps) -> Path:
        folder = scratch / "programs"
        folder.mkdir()
        go_build(go, [*self.build_flags(), "-o", str(folder / BINARY)], ["."], steps)
        for program in PROGRAMS:
            (folder / program).symlink_to(BINARY)
        return folder


def find_or_build(env: Mapping[str, str], progress: ProgressPrinter) -> Binaries:
    if named := env.get(ASSETS):
        return _provided(Path(named))
    recipe = shipped_recipe()
    builder = Builder(cache_folder(env), PinnedGo(recipe.toolchain), env, progress)
    return Binaries(builder.build(recipe))


def shipped_recipe() -> ControlPlaneRecipe:
    """Find the sources in the installed package, or in the checkout that this file is part of."""
    here = Path(__file__).resolve()
    packaged, checkout = here.with_name("controlplane"), here.parents[4] / "controlplane"
    for sources in (packaged, checkout):
        if sources.is_dir():
            return ControlPlaneRecipe(sources)
    raise LocalError(f"the sources of the control plane are not in {packaged}: reinstall virt-steward-demo")


def _provided(folder: Path) -> Binaries:
    missing = [program for program in PROGRAMS if not os.access(folder / program, os.X_OK)]
    if missing:
        raise LocalError(
            f"{ASSETS}={folder} has no program {', '.join(missing)}: add it, or unset {ASSETS} to build all"
        )
    return Binaries(folder.absolute())
