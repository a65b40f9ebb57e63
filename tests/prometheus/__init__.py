"""Prometheus itself, for gates: the one on the PATH, else one that is built once and kept in the cache.

Its module is that of promtool with one more tool, in a folder of its own: who runs only `make test` builds promtool
with as little as it needs.
"""

import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from tests.goprogram import GoProgram, usual_toolchain
from tests.promtool import WITHOUT_CLOUDS

SOURCES = Path(__file__).parent


def program(toolchain: Path) -> GoProgram:
    version = re.findall(r"prometheus/prometheus (v\S+)", (SOURCES / "go.mod").read_text())[0]
    headline = f"prometheus {version} (about 5 minutes on two cores, once)"
    package = "github.com/prometheus/prometheus/cmd/prometheus"
    return GoProgram("prometheus", SOURCES, package, headline, toolchain, WITHOUT_CLOUDS)


def find_or_build(env: Mapping[str, str]) -> Path:
    if found := shutil.which("prometheus", path=env.get("PATH", "")):
        return Path(found)
    return program(usual_toolchain()).built(env) / "prometheus"
