"""Which namespaces an approver covers: in a policy namespace those of its spec, elsewhere at most its own.

Anyone who may write InstallPlanApprovers in a policy namespace decides for the whole cluster. Anywhere else a team
decides for itself alone: its spec can narrow that, and never widen it. Pure functions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    from virt_steward.controllers.approver.observation import Approver


def is_limited(approver: Approver, policy_namespaces: Collection[str]) -> bool:
    """Whether it covers its own namespace at most."""
    return approver.metadata.namespace not in policy_namespaces


def reaches(approver: Approver, namespace: str, policy_namespaces: Collection[str]) -> bool:
    """Whether it covers plans of this namespace, as far as names decide; `namespaceSelector` may exclude it still."""
    if is_limited(approver, policy_namespaces) and namespace != approver.metadata.namespace:
        return False
    targets = approver.spec.target_namespaces
    return not targets or namespace in targets


def asks_for_more(approver: Approver, policy_namespaces: Collection[str]) -> bool:
    """Whether its spec names or implies namespaces that it does not cover, because it is limited."""
    targets = approver.spec.target_namespaces
    return is_limited(approver, policy_namespaces) and set(targets) != {approver.metadata.namespace}
