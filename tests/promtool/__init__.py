"""Prometheus' own checker of rules: the one on the PATH, else one that is built once and kept in the cache."""

import shutil
from collections.abc import Mapping
from pathlib import Path

from tests.promtool.recipe import Recipe
from virt_steward.local.build import Workshop
from virt_steward.local.folders import cache_folder
from virt_steward.local.progress import Narrator
from virt_steward.local.recipe import shipped_recipe
from virt_steward.local.toolchain import PinnedGo


def find_or_build(env: Mapping[str, str]) -> Path:
    if found := shutil.which("promtool", path=env.get("PATH", "")):
        return Path(found)
    toolchain = shipped_recipe().toolchain
    workshop = Workshop(cache_folder(env), PinnedGo(toolchain), env, Narrator())
    return workshop.build(Recipe(toolchain)) / "promtool"
