"""Prometheus at work, with a configuration and rules that a test may change."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import yaml

from tests import prometheus
from tests.eventually import eventually
from tests.ports import a_free_port


class PrometheusServer:
    """A running Prometheus, and what it answers."""

    def __init__(self, folder: Path, process: asyncio.subprocess.Process, url: str) -> None:
        self.url = url
        self._folder = folder
        self._process = process

    def use(self, rules: str) -> None:
        (self._folder / "rules.yaml").write_text(rules)
        self._process.send_signal(signal.SIGHUP)

    async def query(self, expr: str) -> list[tuple[dict[str, str], float]]:
        """The series of an instant query, each with its value."""
        found = await self._ask("query", {"query": expr})
        return [(one["metric"], float(one["value"][1])) for one in found["result"]]

    async def firing(self) -> list[dict[str, str]]:
        """The labels of all alerts that fire."""
        found = await self._ask("alerts", {})
        return [one["labels"] for one in found["alerts"] if one["state"] == "firing"]

    async def fires(self, alert: str, **labels: str) -> bool:
        wanted = {"alertname": alert, **labels}
        return any(wanted.items() <= one.items() for one in await self.firing())

    async def troubles(self) -> list[str]:
        """Why targets cannot be scraped, and rules cannot be evaluated."""
        targets = (await self._ask("targets", {}))["activeTargets"]
        return [*(one["lastError"] for one in targets if one["lastError"]), *await self.failed_rules()]

    async def failed_rules(self) -> list[str]:
        groups = (await self._ask("rules", {}))["groups"]
        return [rule["lastError"] for group in groups for rule in group["rules"] if rule.get("lastError")]

    async def _ask(self, what: str, parameters: Mapping[str, str]) -> Any:
        url = f"{self.url}/api/v1/{what}"
        async with aiohttp.ClientSession() as session, session.get(url, params=parameters) as response:
            answer = await response.json()
        assert answer["status"] == "success", answer
        return answer["data"]


@asynccontextmanager
async def a_prometheus(folder: Path, **config: Any) -> AsyncIterator[PrometheusServer]:
    """Started with these parts of its configuration, and rules in rules.yaml."""
    usual = {"global": {"evaluation_interval": "1s"}, "rule_files": ["rules.yaml"]}
    (folder / "prometheus.yaml").write_text(yaml.safe_dump(usual | config))
    if not (folder / "rules.yaml").exists():
        (folder / "rules.yaml").write_text("groups: []\n")
    port = a_free_port()
    address = f"127.0.0.1:{port}"
    program = str(prometheus.find_or_build(os.environ))
    options = (f"--config.file={folder}/prometheus.yaml", f"--storage.tsdb.path={folder}/data")
    with (folder / "log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            program, *options, f"--web.listen-address={address}", stdout=log, stderr=log
        )
    try:
        assert await eventually(lambda: _is_ready(f"http://{address}/-/ready"), within=60), (folder / "log").read_text()
        yield PrometheusServer(folder, process, f"http://{address}")
    finally:
        process.kill()
        await process.wait()


async def _is_ready(url: str) -> bool:
    try:
        async with aiohttp.ClientSession() as session, session.get(url) as response:
            return response.status == 200
    except aiohttp.ClientError:
        return False
