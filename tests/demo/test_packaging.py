"""The demo is a distribution of its own: neither the main wheel nor the image contains it."""

import re
import subprocess
import sys
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
