"""Kubeconfigs as tests need them: valid unless told otherwise."""

import base64
from pathlib import Path
from typing import Any

import yaml

SECRET = "s3cr3t-that-nobody-may-see"


def a_kubeconfig(
    *, user: dict[str, Any] | None = None, cluster: dict[str, Any] | None = None, **changes: Any
) -> dict[str, Any]:
    """One context `home` with cluster `here` and user `admin`; `changes` replace whole sections."""
    return {
        "current-context": "home",
        "contexts": [{"name": "home", "context": {"cluster": "here", "user": "admin"}}],
        "clusters": [{"name": "here", "cluster": {"server": "https://api.example:6443", **(cluster or {})}}],
        "users": [{"name": "admin", "user": {"token": SECRET} if user is None else user}],
        **{key.replace("_", "-"): value for key, value in changes.items()},
    }


def a_context(name: str, cluster: str = "here", user: str = "admin", **more: str) -> dict[str, Any]:
    return {"name": name, "context": {"cluster": cluster, "user": user, **more}}


def written(path: Path, content: object) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(content))
    return str(path)


def b64(data: bytes | str) -> str:
    return base64.b64encode(data.encode() if isinstance(data, str) else data).decode()
