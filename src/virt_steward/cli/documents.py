"""The answers of all commands for programs: the type of each, from which its JSON Schema is generated."""

from __future__ import annotations

from typing import Any

from virt_steward.cli.decision_results import DecisionsDocument
from virt_steward.cli.diff import DiffDocument
from virt_steward.cli.inbox import InboxDocument
from virt_steward.cli.main import VersionDocument
from virt_steward.cli.manifests import ManifestList
from virt_steward.cli.place import PlacementsDocument
from virt_steward.cli.switch_check import SwitchDocument
from virt_steward.cli.uninstall import RemovalReport
from virt_steward.cli.watch import WatchDocument
from virt_steward.controllers.autopilot.asset_report import RenderedAsset
from virt_steward.insight.approvals import ApprovalExplanation
from virt_steward.insight.assets.explain import AssetExplanation
from virt_steward.insight.health_survey import InstallationStatus
from virt_steward.insight.placements import PlacementExplanation
from virt_steward.insight.plans import PlanExplanation, PlannedChanges

DOCUMENTS: dict[str, Any] = {
    "inbox": InboxDocument,
    "plan": PlannedChanges,
    "diff": DiffDocument,
    "explain installplan": ApprovalExplanation,
    "explain plan": PlanExplanation,
    "explain machine": PlacementExplanation,
    "explain asset": AssetExplanation,
    "approve profile": DecisionsDocument,
    "approve installplan": DecisionsDocument,
    "reject": DecisionsDocument,
    "watch": WatchDocument,
    "rollback": DecisionsDocument,
    "replan": DecisionsDocument,
    "release": DecisionsDocument,
    "resume": DecisionsDocument,
    "choose": DecisionsDocument,
    "place": PlacementsDocument,
    "status": InstallationStatus,
    "switch-check": SwitchDocument,
    "render": list[RenderedAsset],
    "crds": ManifestList,
    "rbac": ManifestList,
    "policies": ManifestList,
    "roles": ManifestList,
    "manifests": ManifestList,
    "uninstall": RemovalReport,
    "version": VersionDocument,
}
"""By command."""
