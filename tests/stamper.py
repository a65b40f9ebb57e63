"""A small controller on the real runtime: it stamps every ConfigMap that wants it with the digest of its content.

`python -m tests.stamper --kubeconfig FILE --namespace NAME` runs it as a process of its own, which logs as JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
from typing import TYPE_CHECKING, Any

import msgspec
import structlog

from virt_steward import app, logs
from virt_steward.kube import faults
from virt_steward.kube.client import Selection
from virt_steward.kube.errors import Conflict
from virt_steward.kube.events import Occurrence
from virt_steward.kube.watch import projection
from virt_steward.objects.identity import Key, Kind, Ref, Regarding
from virt_steward.objects.meta import Meta
from virt_steward.runtime.access import PATCH, WATCH, Access, Grant
from virt_steward.runtime.addresses import parse_address
from virt_steward.runtime.controller import ControllerDefinition, Toolbox, Trigger, itself
from virt_steward.runtime.informer import Source
from virt_steward.runtime.outcomes import Done, Outcome, RequeueAfter
from virt_steward.runtime.probes import Addresses
from virt_steward.settings import Settings, lease_times

if TYPE_CHECKING:
    from collections.abc import Sequence

log = structlog.get_logger()

NAME = "stamper"
CONFIG_MAP = Kind("", "ConfigMap", "configmaps")
WANTED = {"stamp": "wanted"}
STAMP = "tests.virt-steward/stamp"
COUNT = "tests.virt-steward/count"


class _Annotated(Meta, frozen=True, rename="camel", gc=False):
    annotations: dict[str, str] = msgspec.field(default_factory=dict)


class Paper(msgspec.Struct, frozen=True, gc=False):
    """A ConfigMap with the fields that are read here."""

    metadata: _Annotated
    data: dict[str, str] = msgspec.field(default_factory=dict)

    @property
    def digest(self) -> str:
        return hashlib.sha256(msgspec.json.encode(self.data, order="sorted")).hexdigest()[:16]

    @property
    def is_stamped(self) -> bool:
        return self.metadata.annotations.get(STAMP) == self.digest

    @property
    def stamps(self) -> int:
        """How often it has been stamped."""
        return int(self.metadata.annotations.get(COUNT, "0"))


class Stamper:
    """Applies the stamp on exactly the object that was seen, and counts, so that a second stamp shows."""

    def __init__(self, tools: Toolbox, namespace: str) -> None:
        papers = Source(CONFIG_MAP, projection(Paper), Selection(namespace, labels="stamp=wanted"))
        self.triggers: tuple[Trigger[Any], ...] = (Trigger(papers, itself),)
        self._papers = tools.store(papers)
        self._client = tools.client
        self._recorder = tools.recorder
        tools.when_leading(lambda: log.info("stamper begins"))

    async def reconcile(self, key: Key) -> Outcome:
        paper = self._papers.get(key)
        if paper is None or paper.is_stamped:
            return Done()
        faults.reach("stamp.before")
        try:
            await self._client.apply(stamped(paper), manager=NAME)
        except Conflict:
            return RequeueAfter(0.05, "the object has changed since it was read")
        faults.reach("stamp.after")
        regarding = Regarding(Ref(CONFIG_MAP, key), "v1", paper.metadata.uid)
        self._recorder.once(Occurrence(regarding, "Normal", "Stamped", "Stamp", "Stamped.", episode=paper.digest))
        return Done()


def stamped(paper: Paper) -> dict[str, Any]:
    metadata = paper.metadata
    annotations = {STAMP: paper.digest, COUNT: str(paper.stamps + 1)}
    seen = {"uid": metadata.uid, "resourceVersion": metadata.resource_version}
    where = {"name": metadata.name, "namespace": metadata.namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {**where, **seen, "annotations": annotations}}


def a_paper(namespace: str, name: str, content: str = "something") -> dict[str, Any]:
    """A ConfigMap that requests a stamp."""
    metadata = {"name": name, "namespace": namespace, "labels": WANTED}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"content": content}}


def a_stamper(namespace: str) -> ControllerDefinition:
    grant = Grant(CONFIG_MAP, (*WATCH, *PATCH), "to stamp ConfigMaps with the label", where=namespace)
    access = Access(NAME, (grant,), other_lease=other_lease(namespace))
    return ControllerDefinition(NAME, access, lambda tools: Stamper(tools, namespace))


def other_lease(namespace: str) -> str:
    """The name of the Lease of another stamper for this namespace, wherever that one runs."""
    return f"other-stamper-of-{namespace}"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog=NAME)
    parser.add_argument("--kubeconfig", required=True)
    parser.add_argument("--namespace", required=True, help="the namespace of its ConfigMaps and its lease")
    parser.add_argument("--lease-duration", type=int, default=2)
    parser.add_argument("--lease-retry", type=float, default=0.2)
    parser.add_argument("--grace", type=float, default=5.0)
    parser.add_argument("--health-probe-bind-address", default="0")
    parser.add_argument("--metrics-bind-address", default="0")
    given = parser.parse_args(arguments)
    logs.configure("json", "info")
    settings = Settings(
        kubeconfig=given.kubeconfig,
        context=None,
        namespace=given.namespace,
        leader_elect=True,
        lease=lease_times(given.lease_duration, given.lease_retry),
        grace=given.grace,
        addresses=Addresses(
            parse_address("--metrics-bind-address", given.metrics_bind_address),
            None,
            parse_address("--health-probe-bind-address", given.health_probe_bind_address),
        ),
    )
    asyncio.run(app.run(settings, (a_stamper(given.namespace),)))


if __name__ == "__main__":
    main()
