"""The HyperConverged as assets read it, independent of its API version."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from virt_steward.objects.identity import Kind
from virt_steward.objects.paths import NothingThere, Pointer, get

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

HYPERCONVERGED = Kind("hco.kubevirt.io", "HyperConverged", "hyperconvergeds")
PREFIX = "platform.kubevirt.io/"
"""The prefix of every annotation by which users steer the autopilot."""
AUTOPILOT_SCOPE = f"{PREFIX}autopilot"
"""On the HyperConverged: `true`, or the names and groups of the assets to manage."""

SECTIONS = frozenset(
    ("deployment", "networking", "observability", "security", "storage", "virtualization", "workloadSources")
)
"""Where v1 keeps below `spec` what v1beta1 has there directly."""

LIVE_MIGRATION = Pointer(("spec", "liveMigrationConfig"))


@dataclass(frozen=True, slots=True)
class LiveMigration:
    """How many migrations may run at once; the defaults apply if the HyperConverged sets none."""

    per_cluster: int = 5
    per_node: int = 2


@dataclass(frozen=True, slots=True)
class Hco:
    """One HyperConverged. A field is found by its path in either layout."""

    name: str
    namespace: str
    api_version: str
    annotations: Mapping[str, str]
    spec: Mapping[str, Any]

    @classmethod
    def of(cls, obj: Mapping[str, Any]) -> Hco:
        metadata = obj["metadata"]
        return cls(
            metadata["name"],
            metadata.get("namespace") or "",
            obj["apiVersion"],
            metadata.get("annotations") or {},
            spec if isinstance(spec := obj.get("spec"), dict) else {},
        )

    def value(self, pointer: Pointer, default: Any = None) -> Any:
        """Return the value at this path, in either layout; null counts as absent."""
        for place in _places(pointer):
            try:
                found = get({"spec": self.spec}, place)
            except NothingThere:
                continue
            if found is not None:
                return found
        return default

    @property
    def live_migration(self) -> LiveMigration:
        given = self.value(LIVE_MIGRATION, {})
        default = LiveMigration()
        return LiveMigration(
            _number(given, "parallelMigrationsPerCluster", default.per_cluster),
            _number(given, "parallelOutboundMigrationsPerNode", default.per_node),
        )

    def has_feature_gate(self, name: str) -> bool:
        """Gates are a list with states in v1, a map of booleans in v1beta1; the API takes their names in any case."""
        states: dict[str, bool]
        match self.spec.get("featureGates"):
            case list() as gates:
                states = {
                    str(gate.get("name")).lower(): gate.get("state") != "Disabled"
                    for gate in gates
                    if isinstance(gate, dict)
                }
            case dict() as gates:
                states = {gate.lower(): state is True for gate, state in gates.items()}
            case _:
                states = {}
        return states.get(name.lower(), False)


def flatten(pointer: Pointer) -> Pointer:
    """Return the path without the section of v1, so that a field has the same path in both layouts."""
    match pointer.tokens:
        case ("spec", section, field, *rest) if section in SECTIONS:
            return Pointer(("spec", field, *rest))
    return pointer


def _places(pointer: Pointer) -> Iterator[Pointer]:
    plain = flatten(pointer)
    yield plain
    for section in sorted(SECTIONS):
        yield Pointer(("spec", section, *plain.tokens[1:]))


def _number(settings: Any, name: str, default: int) -> int:
    found = settings.get(name) if isinstance(settings, dict) else None
    return found if isinstance(found, int) and not isinstance(found, bool) else default
