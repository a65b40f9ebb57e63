"""Makes the observation of one plan from caches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from virt_steward.controllers.approver.observation import ApproverObservation
from virt_steward.holds.freezes import NOT_FROZEN
from virt_steward.holds.gate_settings import READY_MADE_ONLY
from virt_steward.objects.identity import Key
from virt_steward.objects.meta import Meta

if TYPE_CHECKING:
    from datetime import datetime

    from virt_steward.controllers.approver.observation import Approver
    from virt_steward.controllers.approver.olm import InstalledCsv, InstallPlan, Subscription
    from virt_steward.holds.gate_settings import GateSettings
    from virt_steward.holds.installation import FreezeView
    from virt_steward.runtime.store import Store


class NamespaceMeta(Meta, frozen=True):
    labels: dict[str, str] = msgspec.field(default_factory=dict)


class Namespace(msgspec.Struct, frozen=True):
    """A namespace, for selectors on its labels."""

    metadata: NamespaceMeta


EVERYWHERE = ""


@dataclass(frozen=True, slots=True)
class ApproverStores:
    """The caches of the approver."""

    plans: Store[InstallPlan]
    subscriptions: Store[Subscription]
    csvs: Store[InstalledCsv]
    namespaces: Store[Namespace]
    approvers: Store[Approver]
    watched: tuple[str, ...] = ()
    """The only namespaces that are watched; none means all."""
    policy_namespaces: frozenset[str] = frozenset()
    """Where approvers cover what their spec says."""
    freezes: FreezeView | None = None
    """The freeze of the installation; None: it is not known here."""
    gates: GateSettings = READY_MADE_ONLY

    @property
    def denied(self) -> frozenset[str]:
        """Namespaces that are forbidden to read, or EVERYWHERE: their caches may be out of date."""
        return frozenset().union(
            *(store.denied for store in (self.plans, self.subscriptions, self.csvs, self.approvers))
        )

    @property
    def plan_versions(self) -> dict[str, int]:
        """The resourceVersion that each watch of plans has reached, by namespace."""
        return {namespace: version() for namespace, version in self.plans.version_of.items()}


def observe(stores: ApproverStores, key: Key, now: datetime) -> ApproverObservation | None:
    """None: there is no such plan."""
    plan = stores.plans.get(key)
    if plan is None:
        return None
    namespace = stores.namespaces.get(Key("", key.namespace))
    return ApproverObservation(
        plan,
        subscriptions=tuple(stores.subscriptions.by("namespace", key.namespace)),
        unreadable=tuple(
            sorted(one.name for one in stores.subscriptions.unreadables() if one.namespace == key.namespace)
        ),
        siblings=tuple(one for one in stores.plans.by("content", plan.content) if one.metadata.name != key.name),
        installed=tuple(stores.csvs.by("namespace", key.namespace)),
        namespace_labels=namespace.metadata.labels if namespace else None,
        approvers=tuple(sorted(stores.approvers, key=_age)),
        policy_namespaces=stores.policy_namespaces,
        denied_policies=tuple(sorted(stores.policy_namespaces.intersection(stores.approvers.denied))),
        freeze=stores.freezes.state(now) if stores.freezes else NOT_FROZEN,
        gate_settings=stores.gates,
        is_denied=not stores.denied.isdisjoint({EVERYWHERE, key.namespace}),
    )


def _age(approver: Approver) -> tuple[object, str]:
    """If two approvers cover a plan, the older one acts."""
    return approver.metadata.creation_timestamp, approver.metadata.uid
