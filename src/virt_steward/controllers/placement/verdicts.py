"""The verdicts of a rule on a Machine: this cluster, only these, no opinion, an error, or a question to clusters."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from virt_steward.controllers.placement.strategies.strategy import ClusterScore


class PlacementReason(StrEnum):
    """Why a Machine is not placed, for programs."""

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
    MISBEHAVES = "ClusterMisbehaves"
    UNKNOWN_STRATEGY = "UnknownStrategy"
    NO_ROOM = "NoClusterSchedulable"
    FROZEN = "Frozen"
    AMBIGUOUS = "AmbiguousPlacement"


@dataclass(frozen=True, slots=True)
class Chosen:
    cluster: str
    reason: str
    scores: tuple[ClusterScore, ...] = ()
    """The ranking, best first, where clusters were compared."""


@dataclass(frozen=True, slots=True)
class Narrowed:
    """Only these clusters remain for the rules that follow."""

    clusters: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class Abstain:
    """The rule does not apply."""

    reason: str


@dataclass(frozen=True, slots=True)
class Permitted:
    """The rule could block the placement, and does not."""

    reason: str


@dataclass(frozen=True, slots=True)
class Blocked:
    """No cluster can be chosen until somebody acts."""

    reason: PlacementReason
    message: str


@dataclass(frozen=True, slots=True)
class Ask:
    """The rule cannot decide before these clusters were asked for the Machine's VM."""

    clusters: tuple[str, ...]


Verdict = Chosen | Narrowed | Abstain | Permitted | Blocked | Ask
