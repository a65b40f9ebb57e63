"""What the image sets for its processes."""

import re
from pathlib import Path

CONTAINERFILE = Path(__file__).parents[1] / "Containerfile"


def image_settings() -> dict[str, str]:
    """For Python and glibc, but for where modules are: those of tests are not compiled in advance."""
    settings = re.findall(r"\b((?:PYTHON|MALLOC_)\w+)=(\S+)", CONTAINERFILE.read_text())
    return {name: value for name, value in settings if name not in {"PYTHONPATH", "PYTHONDONTWRITEBYTECODE"}}


def allocator_settings() -> dict[str, str]:
    """For glibc alone. It reads them when a process starts."""
    found = {name: value for name, value in image_settings().items() if name.startswith("MALLOC_")}
    assert found
    return found
