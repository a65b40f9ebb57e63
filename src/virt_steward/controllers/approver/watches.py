"""What the approver watches, and which plans and approvers a change may concern. Handlers are pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from virt_steward.apis.installplanapprover import INSTALL_PLAN_APPROVER
from virt_steward.controllers.approver.observation import Approver
from virt_steward.controllers.approver.observe import ApproverStores, Namespace
from virt_steward.controllers.approver.olm import (
    CLUSTER_SERVICE_VERSION,
    INSTALL_PLAN,
    SUBSCRIPTION,
    Subscription,
    decode_csv,
    decode_plan,
)
from virt_steward.controllers.approver.scope import is_limited
from virt_steward.kube.client import Selection
from virt_steward.kube.watch import projection
from virt_steward.objects.corekinds import NAMESPACE
from virt_steward.runtime.access import Reach
from virt_steward.runtime.controller import Trigger
from virt_steward.runtime.informer import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from virt_steward.controllers.approver.olm import InstallPlan
    from virt_steward.kube.watch import Projected
    from virt_steward.objects.identity import Key

    Handler = Callable[[Key, Any, Any], Iterable[Key | "ApproverKey"]]


@dataclass(frozen=True, slots=True, order=True)
class ApproverKey:
    """The key under which an approver's status is reported; plans have their own."""

    approver: Key

    def __str__(self) -> str:
        return f"status of {self.approver}"


def _namespace(obj: Projected) -> tuple[str]:
    return (obj.metadata.namespace,)


def _content(plan: InstallPlan) -> tuple[str]:
    return (plan.content,)


def _namespace_if_open(plan: InstallPlan) -> tuple[str, ...]:
    return (plan.metadata.namespace,) if plan.is_open else ()


PLANS = Source(
    INSTALL_PLAN,
    decode_plan,
    indexes={"content": _content, "open": _namespace_if_open},
    where=Reach.TARGETS,
)
SUBSCRIPTIONS = Source(SUBSCRIPTION, projection(Subscription), indexes={"namespace": _namespace}, where=Reach.TARGETS)
# OLM copies the CSV of an operator into its target namespaces: there may be thousands, and they install nothing.
CSVS = Source(
    CLUSTER_SERVICE_VERSION,
    decode_csv,
    Selection(labels="!olm.copiedFrom", metadata_only=True),
    indexes={"namespace": _namespace},
    where=Reach.TARGETS,
)
NAMESPACES = Source(NAMESPACE, projection(Namespace), Selection(metadata_only=True))
APPROVERS = Source(INSTALL_PLAN_APPROVER, projection(Approver), where=Reach.TARGETS)


def _is_newly_signed(before: InstallPlan | None, after: InstallPlan) -> bool:
    """Whether a person has approved it, which is reported."""
    return bool(after.signature.user) and (before is None or before.signature != after.signature)


class ApproverEventHandlers:
    """Maps each event to the keys that it can concern."""

    def __init__(self, stores: ApproverStores) -> None:
        self._stores = stores

    @property
    def triggers(self) -> tuple[Trigger[Any], ...]:
        return (
            Trigger(PLANS, self._or_by_access(self._by_plan)),
            Trigger(SUBSCRIPTIONS, self._or_by_access(self._by_neighbour)),
            Trigger(CSVS, self._or_by_access(self._by_neighbour)),
            Trigger(NAMESPACES, self._by_namespace),
            Trigger(APPROVERS, self._or_by_access(self._by_approver)),
        )

    def _or_by_access(self, handler: Handler) -> Handler:
        """A key without a name means its namespace: the permission to read there has changed."""
        return lambda key, before, after: handler(key, before, after) if key.name else self._by_access(key.namespace)

    def _by_access(self, namespace: str) -> Iterable[Key | ApproverKey]:
        yield from self._open_plans_in(namespace)
        yield from (ApproverKey(approver.metadata.key) for approver in self._stores.approvers)

    def _by_plan(self, key: Key, before: InstallPlan | None, after: InstallPlan | None) -> Iterable[Key | ApproverKey]:
        if after and (after.is_open or _is_newly_signed(before, after)):  # others are forgotten without a reconcile
            yield key
        if before and after is None:  # it superseded older plans with the same CSVs
            plans = self._stores.plans.by("open", key.namespace)
            yield from (one.metadata.key for one in plans if set(one.csvs) == set(before.csvs))
        stamps = {plan.stamp.by for plan in (before, after) if plan and plan.stamp.by}
        if stamps and (before is None or after is None or before.stamp != after.stamp):
            yield from (ApproverKey(one.metadata.key) for one in self._stores.approvers if one.metadata.uid in stamps)

    def _by_neighbour(self, key: Key, _before: object, _after: object) -> Iterable[Key]:
        return self._open_plans_in(key.namespace)

    def _by_namespace(self, key: Key, before: Namespace | None, after: Namespace | None) -> Iterable[Key]:
        if before and after and before.metadata.labels == after.metadata.labels:
            return ()
        return self._open_plans_in(key.name)

    def _by_approver(self, key: Key, before: Approver | None, after: Approver | None) -> Iterable[Key | ApproverKey]:
        yield ApproverKey(key)
        if before and after and before.spec == after.spec and before.metadata.uid == after.metadata.uid:
            return
        targets = [self._targets(one) for one in (before, after) if one]
        if all(targets):
            for namespace in {name for names in targets for name in names}:
                yield from self._open_plans_in(namespace)
        else:
            yield from (plan.metadata.key for plan in self._stores.plans if plan.is_open)

    def _targets(self, approver: Approver) -> tuple[str, ...]:
        """The only namespaces whose plans it can concern; none means all."""
        if is_limited(approver, self._stores.policy_namespaces):
            return (approver.metadata.namespace,)
        return approver.spec.target_namespaces

    def _open_plans_in(self, namespace: str) -> Iterable[Key]:
        if not namespace:  # the permission for the whole cluster has changed
            return [plan.metadata.key for plan in self._stores.plans if plan.is_open]
        return [plan.metadata.key for plan in self._stores.plans.by("open", namespace)]
