"""Files and folders that only their owner may read."""

import os
from pathlib import Path
from typing import BinaryIO

from virt_steward_demo.local.errors import LocalError


def make_folder(folder: Path) -> Path:
    """One that is there already stays as it is: it may be somebody's own. The files in it are private by themselves."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise LocalError(
            f"cannot use the folder {folder} ({error.strerror}): make room for it or name another"
        ) from error
    return folder


def write_file(path: Path, content: bytes) -> Path:
    """Write a file that is complete and private from the instant it appears."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    return draft.replace(path)


def open_log(path: Path) -> BinaryIO:
    """Open a file to append to."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab")
