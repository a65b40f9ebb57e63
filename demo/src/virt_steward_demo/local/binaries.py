"""Where the programs of the local control plane come from: KUBEBUILDER_ASSETS, else the cache, else a build."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from virt_steward_demo.local.build import Workshop
from virt_steward_demo.local.errors import LocalError
from virt_steward_demo.local.folders import cache_folder
from virt_steward_demo.local.progress import ProgressPrinter
from virt_steward_demo.local.recipe import PROGRAMS, shipped_recipe
from virt_steward_demo.local.toolchain import PinnedGo

ASSETS = "KUBEBUILDER_ASSETS"


@dataclass(frozen=True, slots=True)
class Binaries:
    """A folder with etcd, kube-apiserver and kube-controller-manager."""

    folder: Path

    def program(self, name: str) -> Path:
        return self.folder / name


def find_or_build(env: Mapping[str, str], narrator: ProgressPrinter) -> Binaries:
    if named := env.get(ASSETS):
        return _provided(Path(named))
    recipe = shipped_recipe()
    workshop = Workshop(cache_folder(env), PinnedGo(recipe.toolchain), env, narrator)
    return Binaries(workshop.build(recipe))


def _provided(folder: Path) -> Binaries:
    missing = [program for program in PROGRAMS if not os.access(folder / program, os.X_OK)]
    if missing:
        raise LocalError(
            f"{ASSETS}={folder} has no program {', '.join(missing)}: add it, or unset {ASSETS} to build all"
        )
    return Binaries(folder.absolute())
