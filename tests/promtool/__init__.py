"""Prometheus' own checker of rules: the one on the PATH, else one that is built once and kept in the cache."""

import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from tests.goprogram import FLAGS, GoProgram, usual_toolchain

SOURCES = Path(__file__).parent
# Rules need no discovery of targets, which would bring the libraries of every cloud.
WITHOUT_CLOUDS = (*FLAGS, "-tags=remove_all_sd")


def program(toolchain: Path) -> GoProgram:
    version = re.findall(r"prometheus/prometheus (v\S+)", (SOURCES / "go.mod").read_text())[0]
    headline = f"promtool {version} (about 2 minutes on two cores, once)"
    package = "github.com/prometheus/prometheus/cmd/promtool"
    return GoProgram("promtool", SOURCES, package, headline, toolchain, WITHOUT_CLOUDS)


def find_or_build(env: Mapping[str, str]) -> Path:
    if found := shutil.which("promtool", path=env.get("PATH", "")):
        return Path(found)
    return program(usual_toolchain()).built(env) / "promtool"
