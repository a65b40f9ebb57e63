"""Where things are kept between runs, by the XDG base directory rules."""

from collections.abc import Mapping
from pathlib import Path

PROJECT = "virt-steward"


def cache_folder(env: Mapping[str, str]) -> Path:
    return _base(env, "XDG_CACHE_HOME", ".cache") / PROJECT


def state_folder(env: Mapping[str, str]) -> Path:
    """Not the runtime folder: that one goes away at logout, and what runs here does not."""
    return _base(env, "XDG_STATE_HOME", ".local/state") / PROJECT


def _base(env: Mapping[str, str], variable: str, default: str) -> Path:
    named = Path(env.get(variable, ""))
    return named if named.is_absolute() else Path.home() / default  # the rules say: ignore a relative one
