"""Where the programs of the control plane come from."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from virt_steward_demo.local import LocalError
from virt_steward_demo.local.binaries import (
    SOURCE_FILES,
    ControlPlaneRecipe,
    find_or_build,
    shipped_recipe,
)
from virt_steward_demo.local.build import go_environment
from virt_steward_demo.local.files import cache_folder, state_folder
from virt_steward_demo.local.progress import ProgressPrinter


def a_recipe(folder: Path) -> ControlPlaneRecipe:
    for name in SOURCE_FILES:
        (folder / name).write_text(name)
    return ControlPlaneRecipe(folder)


def test_find_or_build_prefers_kubebuilder_assets(tmp_path: Path) -> None:
    for name in ("etcd", "kube-apiserver", "kube-controller-manager"):
        (tmp_path / name).touch(0o700)
    assert find_or_build({"KUBEBUILDER_ASSETS": str(tmp_path)}, ProgressPrinter()).folder == tmp_path


def test_find_or_build_names_missing_programs(tmp_path: Path) -> None:
    (tmp_path / "etcd").touch(0o700)
    (tmp_path / "kube-apiserver").touch(0o600)
    with pytest.raises(LocalError, match=r"has no program kube-apiserver, kube-controller-manager: .* unset"):
        find_or_build({"KUBEBUILDER_ASSETS": str(tmp_path)}, ProgressPrinter())


def test_find_or_build_uses_cache(tmp_path: Path) -> None:
    cached = tmp_path / "virt-steward" / shipped_recipe().name
    cached.mkdir(parents=True)
    assert find_or_build({"XDG_CACHE_HOME": str(tmp_path)}, ProgressPrinter()).folder == cached


@pytest.mark.parametrize("ingredient", SOURCE_FILES)
def test_recipe_name_changes_with_source_file(tmp_path: Path, ingredient: str) -> None:
    recipe = a_recipe(tmp_path)
    before = recipe.name
    (tmp_path / ingredient).write_text("changed")
    assert recipe.name != before


def test_recipe_version_is_from_shipped_module() -> None:
    recipe = shipped_recipe()
    assert f"k8s.io/kubernetes {recipe.kubernetes_version}\n" in (recipe.sources / "go.mod").read_text()
    assert f"version.gitVersion={recipe.kubernetes_version} " in recipe.build_flags()[-1]


def test_recipe_refuses_module_without_kubernetes(tmp_path: Path) -> None:
    with pytest.raises(LocalError, match=r"requires no k8s\.io/kubernetes"):
        _ = a_recipe(tmp_path).kubernetes_version


@pytest.mark.parametrize(
    ("user", "seen"),
    [
        pytest.param({"GOFLAGS": "-mod=vendor"}, {"GOFLAGS": "-mod=readonly"}, id="GOFLAGS are ours"),
        pytest.param({"GOROOT": "/usr/lib/go"}, {"GOROOT": None}, id="another toolchain's GOROOT is dropped"),
        pytest.param({"GOARCH": "riscv64"}, {"GOARCH": None}, id="a foreign GOARCH is dropped"),
        pytest.param({"GOPROXY": "off"}, {"GOPROXY": "off"}, id="GOPROXY is the user's"),
        pytest.param({"GOCACHE": "/mine"}, {"GOCACHE": "/mine"}, id="GOCACHE is the user's"),
        pytest.param({}, {"GOCACHE": "/cache", "GOTOOLCHAIN": "local", "CGO_ENABLED": "0"}, id="the rest is set"),
    ],
)
def test_go_environment_keeps_user_settings_only_where_safe(user: dict[str, str], seen: dict[str, str | None]) -> None:
    env = go_environment(user, Path("/scratch"), Path("/cache"))
    assert {name: env.get(name) for name in seen} == seen


@pytest.mark.parametrize(
    ("env", "base"),
    [
        pytest.param({"XDG_CACHE_HOME": "/c", "XDG_STATE_HOME": "/s"}, ("/c", "/s"), id="named"),
        pytest.param({}, ("~/.cache", "~/.local/state"), id="not named"),
        pytest.param(
            {"XDG_CACHE_HOME": "c", "XDG_STATE_HOME": ""}, ("~/.cache", "~/.local/state"), id="relative or empty"
        ),
    ],
)
def test_folders_follow_xdg_rules(env: dict[str, str], base: tuple[str, str]) -> None:
    found = (cache_folder(env), state_folder(env))
    assert found == tuple(Path(folder).expanduser() / "virt-steward" for folder in base)


def test_progress_on_terminal_shows_package_count() -> None:
    screen = io.StringIO()
    with ProgressPrinter(Console(file=screen, force_terminal=True, width=100)) as progress:
        progress.show("compiling packages", 3, 2104)
    assert "compiling packages" in screen.getvalue()
    assert "3/2104" in screen.getvalue()


def test_progress_in_log_shows_plain_lines() -> None:
    log = io.StringIO()
    with ProgressPrinter(Console(file=log, width=20)) as progress:
        progress.say("a sentence [that] is longer than the line")
        progress.show("compiling packages", 3, 2104)
    assert log.getvalue() == "a sentence [that] is longer than the line\n"
