"""Evaluates gates: each at most once in a few seconds, however many changes wait for it, and only while one does."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import structlog

from virt_steward.holds.gate_settings import READY_MADE, READY_MADE_ONLY, BadGates, decode_gates
from virt_steward.holds.gates import LONGEST_EVIDENCE, GateState
from virt_steward.holds.prometheus import QueryFailed, fault_of_url, query
from virt_steward.kube.client import Selection
from virt_steward.kube.errors import Forbidden, KubeError, one_line
from virt_steward.objects.meta import Meta
from virt_steward.runtime.access import Grant, Reach

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from virt_steward.holds.gate_settings import Controller, GateSettings, ObjectGate, PrometheusGate
    from virt_steward.holds.gates import GateStates
    from virt_steward.kube.client import Reader
    from virt_steward.runtime.clock import Clock

log = structlog.get_logger()

REMEMBERED = 5.0
"""Seconds for which an answer counts."""
MOST_OBJECTS = 5000
"""Objects of one gate; more of them close it."""
LONGEST_FILE = 1024 * 1024
HOW_TO_ALLOW = (
    "name it in the file of --gates, and apply the output of "
    "'virt-steward rbac --controllers advisor,approver,autopilot --gates FILE'"
)
GATES = "gates"
"""The role with what gates read."""
SHOWN = 3
"""Objects that are named as evidence."""


class _GatedCondition(msgspec.Struct):
    type: str = ""
    status: str = ""
    reason: str = ""


class _GatedStatus(msgspec.Struct):
    conditions: list[_GatedCondition] = []


class _GatedObject(msgspec.Struct):
    metadata: Meta
    status: _GatedStatus | None = None


def load_gates(path: str | None) -> GateSettings:
    """Read --gates; without a file there are the ready-made ones. Raises BadGates."""
    if path is None:
        return READY_MADE_ONLY
    try:
        with Path(path).open("rb") as file:
            content = file.read(LONGEST_FILE + 1)
        if len(content) > LONGEST_FILE:
            raise BadGates("larger than 1 MiB")  # noqa: TRY301 - one message for all faults
        settings = decode_gates(content)
        if settings.prometheus and (fault := fault_of_url(settings.prometheus)):
            raise BadGates(fault)  # noqa: TRY301 - as above
    except OSError as error:
        raise BadGates(f"--gates {path}: {error.strerror}") from None
    except BadGates as error:
        raise BadGates(f"--gates {path}: {error}") from None
    return settings


def grants_for(settings: GateSettings, controller: Controller) -> Iterator[Grant]:
    """What a controller must read to evaluate the gates that its objects may name."""
    names = (*settings.gates, *settings.ready_made, *settings.required.get(controller, ()))
    for name in dict.fromkeys(names):
        gate = settings.find(name)
        if gate and gate.objects:
            where = gate.objects.namespace or Reach.CLUSTER
            yield Grant(gate.objects.object_kind, ("list",), f"to evaluate gate {name}", where, part=GATES)


@dataclass(frozen=True, slots=True)
class _KnownGate:
    state: GateState
    at: float


class GateBoard:
    """The gates of one controller, and what they answered last."""

    def __init__(self, reader: Reader, settings: GateSettings, clock: Clock) -> None:
        self.settings = settings
        self._reader = reader
        self._clock = clock
        self._known: dict[str, _KnownGate] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    async def evaluate(self, names: Iterable[str]) -> GateStates:
        """Answer for each gate; those that were just evaluated are not evaluated again."""
        wanted = tuple(dict.fromkeys(names))
        states = await asyncio.gather(*(self._state(name) for name in wanted))
        return dict(zip(wanted, states, strict=True))

    async def _state(self, name: str) -> GateState:
        if self.settings.find(name) is None:
            defined = ", ".join(sorted({*READY_MADE, *self.settings.gates}))
            return GateState(name, is_open=False, evidence=f"it is not defined, only {defined}; see --gates")
        async with self._locks.setdefault(name, asyncio.Lock()):
            known = self._known.get(name)
            if known and self._clock.now() - known.at < REMEMBERED:
                return known.state
            state = await self._evaluated(name)
            if not state.is_open:
                before = known.state.since if known else None
                state = replace(state, since=before or self._clock.utc())
            if known is None or known.state.is_open != state.is_open:
                log.info("gate evaluated", gate=name, open=state.is_open, evidence=state.evidence)
            self._known[name] = _KnownGate(state, self._clock.now())
            return state

    async def _evaluated(self, name: str) -> GateState:
        gate = self.settings.find(name)
        assert gate  # noqa: S101 - the caller has checked that it is defined
        try:
            evidence = await (self._of_objects(gate.objects) if gate.objects else self._of_query(gate.prometheus))
        except Forbidden:
            kind = gate.objects.object_kind if gate.objects else ""
            evidence = f"it cannot be evaluated: forbidden (403) to list {kind}; {HOW_TO_ALLOW}"
        except (KubeError, QueryFailed) as error:
            evidence = f"it cannot be evaluated: {error}"
        return GateState(name, is_open=not evidence, evidence=one_line(evidence)[:LONGEST_EVIDENCE])

    async def _of_query(self, gate: PrometheusGate | None) -> str:
        assert gate  # noqa: S101 - a gate is of one of two kinds
        settings = self.settings.prometheus
        if settings is None:
            raise QueryFailed("the URL of Prometheus is not known; set prometheus.url in the file of --gates")
        found = await query(settings, gate.query)
        more = f" and {found.count - len(found.first)} more" if found.count > len(found.first) else ""
        return f"{'; '.join(found.first)}{more}" if found.count else ""

    async def _of_objects(self, gate: ObjectGate) -> str:
        selection = Selection(gate.namespace, gate.selector)
        objects, faulty = 0, list[str]()
        async for page in self._reader.pages(gate.object_kind, selection):
            objects += len(page.items)
            if objects > MOST_OBJECTS:
                return f"there are more than {MOST_OBJECTS} objects of {gate.object_kind}: narrow the selector"
            faulty += [fault for raw in page.items if (fault := _fault_of(gate, bytes(raw)))]
            await asyncio.sleep(0)  # a page takes some milliseconds to decode
        if not objects and not gate.absent:
            return f"no {gate.object_kind} is selected, so that nothing tells whether all is well"
        more = f" and {len(faulty) - SHOWN} more" if len(faulty) > SHOWN else ""
        return f"{'; '.join(faulty[:SHOWN])}{more}" if faulty else ""


def _fault_of(gate: ObjectGate, raw: bytes) -> str:
    """Why an object closes the gate; empty if it does not."""
    try:
        found = msgspec.json.decode(raw, type=_GatedObject)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return f"an object of {gate.object_kind} cannot be read: {error}"
    name = f"{gate.kind} {found.metadata.key}"
    if gate.absent:
        return f"{name} exists"
    has = {one.type: one for one in found.status.conditions} if found.status else {}
    for wanted, status in gate.conditions.items():
        if wanted not in has:
            return f"{name} has no condition {wanted}"
        if has[wanted].status != status:
            because = f" ({has[wanted].reason})" if has[wanted].reason else ""
            return f"{name} has {wanted}={has[wanted].status}{because}"
    return ""
