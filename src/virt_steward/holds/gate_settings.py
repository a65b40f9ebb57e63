"""The file of --gates: which gates there are besides the ready-made ones, and how Prometheus is asked. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import msgspec

from virt_steward.objects.durations import BadDuration, parse_duration
from virt_steward.objects.errors import UserError
from virt_steward.objects.identity import Kind
from virt_steward.objects.selectors import BadSelector, parse_selector

if TYPE_CHECKING:
    from collections.abc import Iterator

Text = Annotated[str, msgspec.Meta(min_length=1, max_length=253)]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=63, pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")]
Status = Literal["True", "False", "Unknown"]
Controller = Literal["advisor", "approver", "autopilot"]
ReadyMade = Literal["cluster-operators", "pools", "no-critical-alerts"]

CRITICAL_ALERTS = 'ALERTS{alertstate="firing",severity="critical"}'
LONGEST_FAULT = 200
"""Characters of a message that quotes the file."""
LONGEST_WAIT = 300.0
"""Seconds: the longest timeout and interval that are accepted."""


class BadGates(UserError):
    """The file of --gates is invalid. The message says what to write instead."""


class _GateStruct(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Part of the file: a field that is not known is an error."""


class ObjectGate(_GateStruct, frozen=True):
    """Open while all objects that are selected have these conditions; or while there are none."""

    api_version: Text
    kind: Text
    plural: Annotated[str, msgspec.Meta(max_length=63)] = ""
    """Of the resource, for RBAC; empty: the kind in lower case with an s."""
    namespace: Annotated[str, msgspec.Meta(max_length=63)] = ""
    """Empty: all of them, or the kind has none."""
    selector: Annotated[str, msgspec.Meta(max_length=1024)] = ""
    """Labels, as kubectl writes them; empty: all objects."""
    conditions: Annotated[dict[str, Status], msgspec.Meta(max_length=20)] = {}
    """The status that each of these conditions must have. A condition that is missing closes the gate."""
    absent: bool = False
    """Open while no such object exists."""

    @property
    def object_kind(self) -> Kind:
        group, slash, _ = self.api_version.partition("/")
        return Kind(group if slash else "", self.kind, self.plural or f"{self.kind.lower()}s")


class PrometheusGate(_GateStruct, frozen=True):
    """Open while the query returns nothing."""

    query: Annotated[str, msgspec.Meta(min_length=1, max_length=4096)]


class GateDefinition(_GateStruct, frozen=True):
    """One gate, of one of two kinds."""

    objects: ObjectGate | None = None
    prometheus: PrometheusGate | None = None


class PrometheusSettings(_GateStruct, frozen=True):
    """Where and how Prometheus is asked."""

    url: Annotated[str, msgspec.Meta(min_length=1, max_length=2048)]
    """Without /api/v1/query."""
    ca_file: str = ""
    """The authority of its certificate; empty: those of the system."""
    token_file: str = ""
    """A file with a bearer token, read each time; empty: no token is sent."""
    timeout: Annotated[str, msgspec.Meta(max_length=32)] = "10s"

    @property
    def seconds(self) -> float:
        return parse_duration(self.timeout).total_seconds()


class GateSettings(_GateStruct, frozen=True):
    """All of the file."""

    gates: dict[Name, GateDefinition] = {}
    prometheus: PrometheusSettings | None = None
    required: dict[Controller, tuple[Name, ...]] = {}
    """Gates that hold for every object of a controller, besides those that it names."""
    ready_made: tuple[ReadyMade, ...] = ()
    """Ready-made gates that objects name: the roles of `rbac --gates` grant what they read."""
    poll: Annotated[str, msgspec.Meta(max_length=32)] = "30s"
    """How often closed gates are evaluated again while something waits for them."""

    @property
    def poll_seconds(self) -> float:
        return parse_duration(self.poll).total_seconds()

    def of(self, controller: Controller, named: tuple[str, ...]) -> tuple[str, ...]:
        """The gates of one object: those that it names, and those that its controller requires."""
        return tuple(dict.fromkeys((*self.required.get(controller, ()), *named)))

    def find(self, name: str) -> GateDefinition | None:
        return READY_MADE.get(name) or self.gates.get(name)

    def problem(self) -> str | None:
        """What is wrong with it though it has the right form; None if nothing is."""
        return next(self._problems(), None)

    def _problems(self) -> Iterator[str]:
        waits = {"poll": self.poll, **({"prometheus.timeout": self.prometheus.timeout} if self.prometheus else {})}
        for what, text in waits.items():
            if fault := _fault_of_wait(text):
                yield f"{what}: {fault}"
        for name, gate in self.gates.items():
            if fault := _fault_of_gate(name, gate):
                yield f"gate {name}: {fault}"
        for controller, names in self.required.items():
            if unknown := [name for name in names if self.find(name) is None]:
                yield f"required.{controller}: gate {unknown[0]} is not defined"
        asking = [name for name, gate in self.gates.items() if gate.prometheus]
        if asking and self.prometheus is None:
            yield f"gate {asking[0]} asks Prometheus: add prometheus with its url"


READY_MADE: dict[str, GateDefinition] = {
    "cluster-operators": GateDefinition(
        ObjectGate("config.openshift.io/v1", "ClusterOperator", conditions={"Available": "True", "Degraded": "False"})
    ),
    "pools": GateDefinition(
        ObjectGate(
            "machineconfiguration.openshift.io/v1",
            "MachineConfigPool",
            conditions={"Updating": "False", "Degraded": "False"},
        )
    ),
    "no-critical-alerts": GateDefinition(prometheus=PrometheusGate(CRITICAL_ALERTS)),
}
"""Gates that need no definition. The last one needs the URL of Prometheus."""

READY_MADE_ONLY = GateSettings()
"""An installation without a file."""


def decode_gates(content: bytes) -> GateSettings:
    """Read the content of the file. Raises BadGates."""
    try:
        settings = msgspec.yaml.decode(content, type=GateSettings)
    except msgspec.ValidationError as error:
        raise BadGates(str(error)) from None
    except msgspec.DecodeError as error:
        raise BadGates(f"not YAML: {' '.join(str(error).split())[:LONGEST_FAULT]}") from None
    if problem := settings.problem():
        raise BadGates(problem)
    return settings


def _fault_of_wait(text: str) -> str:
    try:
        seconds = parse_duration(text).total_seconds()
    except BadDuration as bad:
        return str(bad)
    return "" if 1 <= seconds <= LONGEST_WAIT else f"{text} is not between 1s and {LONGEST_WAIT:g}s"


def _fault_of_gate(name: str, gate: GateDefinition) -> str:
    if name in READY_MADE:
        return "this name is that of a ready-made gate; choose another"
    if (gate.objects is None) == (gate.prometheus is None):
        return "write either objects or prometheus"
    if gate.objects is None:
        return ""
    if bool(gate.objects.conditions) == gate.objects.absent:
        return "objects: write either conditions or absent: true"
    try:
        if gate.objects.selector:
            parse_selector(gate.objects.selector)
    except BadSelector as bad:
        return f"objects.selector: {bad}"
    return ""
