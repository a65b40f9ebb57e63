"""The demo is a distribution of its own: neither the main wheel nor the image contains it."""

import re
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[2]
DEMO_ONLY = ("virt_steward_demo", "simulation", "controlplane")
RUN_WITHOUT_DEMO = """
import sys
from importlib.abc import MetaPathFinder

class HideDemo(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "virt_steward_demo":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None

import importlib.util
find_spec = importlib.util.find_spec
importlib.util.find_spec = lambda name, *args: None if name == "virt_steward_demo" else find_spec(name, *args)
sys.meta_path.insert(0, HideDemo())
from virt_steward.cli.main import main
main()
"""


def build_wheel(project: Path, folder: Path) -> list[str]:
    """Build a wheel offline, with the hatchling of this environment, and return the names of its files."""
    argv = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    built = subprocess.run(argv, cwd=project, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    (wheel,) = folder.glob("*.whl")
    with ZipFile(wheel) as archive:
        return archive.namelist()


def run_without_demo(*arguments: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-c", RUN_WITHOUT_DEMO, *arguments]
    return subprocess.run(argv, capture_output=True, text=True, check=False)


def parts(names: Sequence[str]) -> set[str]:
    return {part for name in names for part in Path(name).with_suffix("").parts}


def test_main_wheel_contains_no_demo(tmp_path: Path) -> None:
    names = build_wheel(ROOT, tmp_path)
    assert "virt_steward/cli/main.py" in names
    assert parts(names).isdisjoint(DEMO_ONLY)


def test_main_distribution_needs_no_development_packages(tmp_path: Path) -> None:
    build_wheel(ROOT, tmp_path)
    (wheel,) = tmp_path.glob("*.whl")
    with ZipFile(wheel) as archive:
        (metadata,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
        needed = {name_in(line) for line in requirements_in(archive.read(metadata).decode())}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    development = {name_in(one) for one in project["dependency-groups"]["dev"]}
    assert {"aiohttp", "msgspec", "typer"} <= needed
    assert needed.isdisjoint({*development, "rich"})
    locked = set(re.findall(r"^([a-z0-9-]+)==", (ROOT / "requirements/run.txt").read_text(), re.MULTILINE))
    assert needed <= locked
    assert locked.isdisjoint(development)


def requirements_in(metadata: str) -> list[str]:
    """Those that are always installed: extras have a marker."""
    return re.findall(r"^Requires-Dist: ([^;\n]+)$", metadata, re.MULTILINE)


def name_in(requirement: str) -> str:
    found = re.match(r"[A-Za-z0-9-]+", requirement)
    assert found
    return found[0].lower()


def test_controller_starts_without_libraries_that_it_does_not_use() -> None:
    """Each of these takes megabytes of every controller."""
    code = (
        "import sys; from virt_steward.cli.main import load; load(['run']);"
        "from virt_steward.controllers import definition;"
        "from virt_steward.controllers.options import ControllerOptions;"
        "definition('approver', ControllerOptions()); print(*sys.modules)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(ended.stdout.split())
    assert {"aiohttp", "structlog"} <= loaded
    unused = {"rich", "pygments", "greenlet", "yaml", "jinja2", "cryptography", "zoneinfo", "virt_steward_demo"}
    unused |= {"aiohttp.web", "frozenlist._frozenlist", "virt_steward.apis.virtplatformconfig"}
    assert loaded.isdisjoint(unused)


def test_aiohttp_reads_no_certificates_of_the_system() -> None:
    """They take megabytes of every controller; each connection names its own trust."""
    code = (
        "import ssl; real = ssl.create_default_context; from virt_steward.cli.main import load; load(['run']);"
        "from aiohttp import connector; print(len(connector._SSL_CONTEXT_VERIFIED.get_ca_certs()));"
        "print(ssl.create_default_context is real)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.split() == ["0", "True"]


def test_demo_wheel_contains_control_plane_sources(tmp_path: Path) -> None:
    names = build_wheel(ROOT / "demo", tmp_path)
    sources = {f"virt_steward_demo/local/controlplane/{path.name}" for path in (ROOT / "controlplane").iterdir()}
    assert "virt_steward_demo/local/controlplane/main.go" in sources
    assert sources <= set(names)
    assert not [name for name in names if name.startswith("virt_steward/")]


def test_image_contains_only_main_package() -> None:
    copied = re.findall(r"^COPY (?!--from)(\S+) ", (ROOT / "Containerfile").read_text(), re.MULTILINE)
    assert copied == ["requirements/run.txt", "src/virt_steward"]


def test_image_is_built_on_pinned_base_only() -> None:
    text = (ROOT / "Containerfile").read_text()
    bases = re.findall(r"^FROM (\S+)", text, re.MULTILINE)
    assert bases
    assert all(re.search(r"@(\$\{BASE_DIGEST\}|sha256:[0-9a-f]{64})$", base) for base in bases)
    assert re.findall(r"^ARG (.*)", text, re.MULTILINE) == ["BASE_DIGEST"], "a default could be outdated"


@pytest.mark.parametrize("command", ["demo", "local"])
def test_command_without_demo_package_says_how_to_install_it(command: str) -> None:
    ended = run_without_demo(command)
    message = f"{command} is not installed; add it with: pip install 'virt-steward[demo]'"
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, "", f"virt-steward: {message}\n")


def test_help_without_demo_package_lists_other_commands() -> None:
    ended = run_without_demo("--help")
    assert ended.returncode == 0
    assert " explain " in ended.stdout
    assert " demo " not in ended.stdout
