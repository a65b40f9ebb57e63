"""Follows recipes of CONTRIBUTING.md in a copy of the source, with the code that is printed there."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

ROOT = Path(__file__).parents[1]
PROFILES = "controllers/advisor/profiles"
STRATEGIES = "controllers/placement/strategies"


def blocks_of(text: str, language: str) -> list[str]:
    return [dedent(block) for block in re.findall(rf"^ *```{language}\n(.*?)^ *```", text, re.DOTALL | re.MULTILINE)]


def recipe(title: str) -> str:
    [found] = re.findall(rf"^### {title}\n(.*?)^### ", (ROOT / "CONTRIBUTING.md").read_text(), re.DOTALL | re.MULTILINE)
    return found


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of the package that a recipe may change."""
    return shutil.copytree(
        ROOT / "src" / "virt_steward", tmp_path / "virt_steward", ignore=shutil.ignore_patterns("__pycache__")
    )


def insert(file: Path, text: str, *, before: str) -> None:
    content = file.read_text()
    assert content.count(before) == 1, before
    file.write_text(content.replace(before, text + before))


def run(package: Path, *code: str) -> None:
    """Run code, and the tests that it defines, on the changed package."""
    call_tests = "[test() for name, test in list(globals().items()) if name.startswith('test_')]"
    ran = subprocess.run(
        [sys.executable, "-c", "\n".join((*code, call_tests))],
        env={**os.environ, "PYTHONPATH": f"{package.parent}{os.pathsep}{ROOT}"},
        capture_output=True,
        check=False,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr


def test_recipe_for_profile_adds_option_and_target(package: Path) -> None:
    types, module, test = blocks_of(recipe("A profile"), "python")
    name, options_type, field = re.split(r"\n\n\n(?:class ProfileOptions.*\n    \.\.\.\n)?", types)
    insert(package / "apis/profiles.py", f"{name}\n", before="EXAMPLE =")
    insert(package / "apis/profiles.py", f"{options_type}\n\n\n", before="class ProfileOptions(")
    insert(package / "apis/profiles.py", field, before="\n    def of(")
    (package / PROFILES / "vm_banner.py").write_text(module)
    insert(package / PROFILES / "__init__.py", "VM_BANNER, ", before="EXAMPLE, HIGHER")
    insert(package / PROFILES / "__init__.py", "vm_banner, ", before="example_profile, load")
    insert(package / PROFILES / "__init__.py", "    VM_BANNER: vm_banner.profile,\n", before="    EXAMPLE: ")
    run(
        package,
        "from virt_steward.apis.profiles import ProfileOptions, VmBannerOptions",
        "from virt_steward.controllers.advisor.options import AdvisorOptions",
        "from virt_steward.controllers.advisor.profiles import vm_banner",
        "from tests.controllers.advisor.test_profiles import a_context",
        test,
    )


def test_recipe_for_asset_renders_and_checks_conditions(package: Path) -> None:
    folder = package / "assets" / "scheduling" / "virt-priority"
    folder.mkdir(parents=True)
    declaration, template, *_ = blocks_of((ROOT / "docs" / "howto" / "add-an-asset.md").read_text(), "yaml")
    (folder / "asset.yaml").write_text(declaration)
    (folder / "object.yaml.j2").write_text(template)
    run(package, *blocks_of(recipe("An asset"), "python"))


def test_recipe_for_strategy_chooses_cluster(package: Path) -> None:
    text = recipe("A placement strategy")
    [module] = blocks_of(text, "python")
    [row] = re.findall(r"`(pytest\.param\(.*?\)),`", text)
    (package / STRATEGIES / "pack.py").write_text(module)
    insert(
        package / STRATEGIES / "__init__.py",
        "from virt_steward.controllers.placement.strategies.pack import PACK\n",
        before="from virt_steward.controllers.placement.strategies.round",
    )
    insert(package / STRATEGIES / "__init__.py", "        PACK,\n", before="    )\n}")
    run(
        package,
        "import pytest",
        "from tests.controllers.placement import test_strategies as strategies",
        "from tests.controllers.placement.test_strategies import EAST, a_cluster",
        f"strategies.test_strategy_chooses_cluster(*{row}.values)",
    )
