"""What the local control plane is built from, and with which flags."""

import hashlib
import platform
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from virt_steward_demo.local.errors import LocalError
from virt_steward_demo.local.steps import Steps

PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager")
BINARY = "controlplane"
INGREDIENTS = ("go.mod", "go.sum", "main.go", "toolchain.txt")
# They would change what is built, or break a toolchain that is not the user's own.
SURPRISES = frozenset({"GOOS", "GOARCH", "GOROOT", "GOEXPERIMENT", "GOBIN", "GODEBUG"})


@dataclass(frozen=True, slots=True)
class Recipe:
    """A folder with a Go module of one command and the pinned toolchain to build it."""

    sources: Path

    @property
    def name(self) -> str:
        """Changes with any ingredient, so that what is cached under it is never stale."""
        digest = hashlib.sha256()
        for ingredient in INGREDIENTS:
            content = (self.sources / ingredient).read_bytes()
            digest.update(f"{ingredient} {len(content)}\n".encode() + content)
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
                f"{self.sources}/go.mod requires no k8s.io/kubernetes: restore it or reinstall virt-steward"
            )
        return found[1]

    def build_flags(self) -> list[str]:
        package, version = "k8s.io/component-base/version", self.kubernetes_version
        major, minor, _ = version.removeprefix("v").split(".", 2)
        facts = {"gitVersion": version, "gitMajor": major, "gitMinor": minor}
        stamps = " ".join(f"-X {package}.{name}={value}" for name, value in facts.items())
        return ["-trimpath", "-buildvcs=false", f"-ldflags=-s -w {stamps}"]

    def compile(self, go: Path, scratch: Path, steps: Steps) -> Path:
        folder = scratch / "programs"
        folder.mkdir()
        go_build(go, [*self.build_flags(), "-o", str(folder / BINARY)], ["."], steps)
        for program in PROGRAMS:
            (folder / program).symlink_to(BINARY)
        return folder


def shipped_recipe() -> Recipe:
    """Find the sources in the installed package, or in the checkout that this file is part of."""
    here = Path(__file__).resolve()
    packaged, checkout = here.with_name("controlplane"), here.parents[4] / "controlplane"
    for sources in (packaged, checkout):
        if sources.is_dir():
            return Recipe(sources)
    raise LocalError(f"the sources of the control plane are not in {packaged}: reinstall virt-steward")


def go_build(go: Path, flags: Sequence[str], packages: Sequence[str], steps: Steps) -> None:
    """Compile, and show how far it is."""
    tags = [flag for flag in flags if flag.startswith("-tags=")]  # they decide what is imported
    listed = steps.run("downloading modules", [str(go), "list", *tags, "-deps", *packages])
    total = sum(not line.startswith("go: ") for line in listed)  # those lines tell of downloads
    steps.run("compiling packages", [str(go), "build", "-v", *flags, *packages], total=total)


def go_environment(env: Mapping[str, str], scratch: Path, cache: Path) -> dict[str, str]:
    """Keep what the user says of proxies and caches, drop what would change the result."""
    kept = {name: value for name, value in env.items() if name not in SURPRISES}
    fixed = {
        "CGO_ENABLED": "0",
        "GOFLAGS": "-mod=readonly",
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
        "GOTMPDIR": str(scratch),
    }
    return {"GOCACHE": str(cache), **kept, **fixed}
