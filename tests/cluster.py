"""The control plane that the tests of one worker process share, and plain requests to it."""

import base64
import http.client
import json
import os
import ssl
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import yaml

from virt_steward_demo.local.binaries import find_or_build
from virt_steward_demo.local.controlplane import ControlPlane
from virt_steward_demo.local.progress import ProgressPrinter


@contextmanager
def a_control_plane(folder: Path) -> Iterator[ControlPlane]:
    with ControlPlane(find_or_build(os.environ, ProgressPrinter()), folder) as control_plane:
        yield control_plane


@dataclass(frozen=True, slots=True)
class Answer:
    code: int
    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class PlainClient:
    """A client with the standard library only, for tests of the layers below our own client."""

    port: int
    authority: str
    token: str | None

    @classmethod
    def from_kubeconfig(cls, path: Path) -> Self:
        config = yaml.safe_load(path.read_text())
        cluster = config["clusters"][0]["cluster"]
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        return cls(int(cluster["server"].rpartition(":")[2]), authority, config["users"][0]["user"]["token"])

    def ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Answer:
        trust = ssl.create_default_context(cadata=self.authority)
        headers = {"Content-Type": "application/json"}
        if self.token is not None:
            headers["Authorization"] = f"Bearer {self.token}"
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, context=trust, timeout=10)
        with closing(connection):
            connection.request(method, path, json.dumps(body) if body else None, headers)
            response = connection.getresponse()
            return Answer(response.status, json.loads(response.read()))

    def get(self, path: str) -> Answer:
        return self.ask("GET", path)

    def create(self, path: str, body: dict[str, Any]) -> Answer:
        return self.ask("POST", path, body)
