"""Folders between runs, by the XDG base directory rules, and files that only their owner can read."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

from virt_steward_demo.local import LocalError

PROJECT = "virt-steward"


def cache_folder(env: Mapping[str, str]) -> Path:
    return _base(env, "XDG_CACHE_HOME", ".cache") / PROJECT


def state_folder(env: Mapping[str, str]) -> Path:
    """The runtime folder is not used: it is removed at logout, while the control plane keeps running."""
    return _base(env, "XDG_STATE_HOME", ".local/state") / PROJECT


def make_folder(folder: Path) -> Path:
    """Create a private folder. An existing one keeps its mode: the files in it are private by themselves."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise LocalError(
            f"cannot use the folder {folder} ({error.strerror}): make room for it or name another"
        ) from error
    return folder


def write_file(path: Path, content: bytes) -> Path:
    """Write a file that is complete and private from the moment it exists."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    return draft.replace(path)


def open_log(path: Path) -> BinaryIO:
    """Open a private file for appending."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab")


def _base(env: Mapping[str, str], variable: str, default: str) -> Path:
    named = Path(env.get(variable, ""))
    return named if named.is_absolute() else Path.home() / default  # the XDG rules: ignore a relative path
