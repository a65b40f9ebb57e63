"""The memory that a process may use as it is shipped, and what it uses."""

from pathlib import Path

import yaml

BASE = Path(__file__).parents[2] / "deploy" / "base"


def shipped_limit(controller: str) -> int:
    """MiB of memory that the Deployment of a controller may use."""
    objects = yaml.safe_load_all((BASE / f"{controller}.yaml").read_text())
    [deployment] = [one for one in objects if one["kind"] == "Deployment"]
    text: str = deployment["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["memory"]
    assert text.endswith("Mi")
    return int(text[:-2])


def peak(pid: int) -> float:
    """MiB that a process held at most."""
    status = Path(f"/proc/{pid}/status").read_text().split()
    return int(status[status.index("VmHWM:") + 1]) / 1024


def open_files(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))
