"""What a strategy can say of a machine: this cluster, only these, I cannot tell, stop, or ask the clusters first."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class PlacementReason(StrEnum):
    """Why a machine is not placed, for machines."""

    NO_CONFIGS = "NoConfigs"
    CONFIG_NOT_FOUND = "ConfigNotFound"
    CONFIG_INCOMPLETE = "ConfigIncomplete"
    SECRET_NOT_FOUND = "SecretNotFound"  # noqa: S105 - a reason
    SECRET_UNREADABLE = "SecretUnreadable"  # noqa: S105 - a reason
    SECRET_KEY_MISSING = "SecretKeyMissing"  # noqa: S105 - a reason
    BAD_KUBECONFIG = "BadKubeconfig"
    BAD_SELECTOR = "BadSelector"
    NOTHING_SELECTED = "NothingSelected"
    TWO_DEFAULTS = "TwoDefaults"
    FOUND_TWICE = "FoundTwice"
    CLUSTERS_SILENT = "ClustersSilent"
    UNAUTHORIZED = "Unauthorized"
    FORBIDDEN = "Forbidden"
    REFUSED = "ClusterRefuses"
    UNKNOWN_STRATEGY = "UnknownStrategy"
    NO_ROOM = "NoClusterSchedulable"
    AMBIGUOUS = "AmbiguousPlacement"


@dataclass(frozen=True, slots=True)
class Chosen:
    cluster: str
    because: str
    scores: tuple[tuple[str, str], ...] = ()
    """What spoke for each cluster, in words, where they were compared."""


@dataclass(frozen=True, slots=True)
class Narrowed:
    """Only these from here on."""

    clusters: tuple[str, ...]
    because: str


@dataclass(frozen=True, slots=True)
class Abstain:
    because: str


@dataclass(frozen=True, slots=True)
class Blocked:
    reason: PlacementReason
    because: str


@dataclass(frozen=True, slots=True)
class Ask:
    """Nothing can be said before these clusters were asked for the machine's VM."""

    clusters: tuple[str, ...]


Verdict = Chosen | Narrowed | Abstain | Blocked | Ask
