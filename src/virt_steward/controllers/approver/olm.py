"""OLM's objects as the approver reads them: a plan of 300 KB becomes a record of a few hundred bytes."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from sys import intern
from typing import TYPE_CHECKING

import msgspec

from virt_steward.controllers.approver.manual_approval import (
    APPROVAL_COMMENT,
    APPROVED_AT,
    APPROVED_BY_USER,
    NOT_SIGNED,
    ManualApproval,
)
from virt_steward.controllers.approver.stamp_owner import NO_FIELDS, is_our_stamp
from virt_steward.objects.approvals import LONGEST_TEXT
from virt_steward.objects.canonical import sha256
from virt_steward.objects.identity import Kind
from virt_steward.objects.meta import Meta
from virt_steward.objects.versions import version_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

API_VERSION = "operators.coreos.com/v1alpha1"
INSTALL_PLAN = Kind("operators.coreos.com", "InstallPlan", "installplans")
SUBSCRIPTION = Kind("operators.coreos.com", "Subscription", "subscriptions")
CLUSTER_SERVICE_VERSION = Kind("operators.coreos.com", "ClusterServiceVersion", "clusterserviceversions")

APPROVED_BY = "operators.bapu.cloud/approved-by"
"""On an InstallPlan: the InstallPlanApprover that approved it.

It is in the write that approves, so that no approval is lost or counted twice.
"""
APPROVED_BECAUSE = "operators.bapu.cloud/approved-because"
"""On an InstallPlan: why the approver approved it."""

APPROVALS = "operators.bapu.cloud/approvals"
"""On an InstallPlan: the approvals of people, one line each, where a policy requires them (`objects/approvals.py`)."""
REQUIRED_APPROVALS = "operators.bapu.cloud/required-approvals"
"""On an InstallPlan: how many the policy requires. With it, people approve the plan by their approvals alone."""

_COUNT = re.compile("[1-9][0-9]?")

REQUIRES_APPROVAL = "RequiresApproval"

PACKAGE_LABEL = "operators.coreos.com/"
"""Followed by package and namespace."""
LONGEST_LABEL = 63
UNREADABLE = (ValueError, RecursionError)
"""The errors of decoding text that anybody may have written."""

EPOCH = datetime.fromtimestamp(0, UTC)
NOTHING: dict[str, str] = {}
"""Shared by all plans that keep nothing of their steps."""


class ApprovalStamp(msgspec.Struct, frozen=True, gc=False):
    """Our annotations on a plan; all others are dropped."""

    by: str = msgspec.field(default="", name=APPROVED_BY)
    at: str = msgspec.field(default="", name=APPROVED_AT)
    because: str = msgspec.field(default="", name=APPROVED_BECAUSE)


NOT_STAMPED = ApprovalStamp()


class InstallPlanMeta(Meta, frozen=True, rename="camel"):
    creation_timestamp: datetime = EPOCH
    annotations: ApprovalStamp = ApprovalStamp()
    signature: ManualApproval = NOT_SIGNED
    """Of a person; decoded apart from the stamp, so that nobody can void the stamp by adding to it."""
    approvals: str = ""
    """The annotation with the approvals of people, decoded only where a policy requires them."""
    required_approvals: int = 0
    """How many people must approve it before the approver does, as the approver has noted on it."""


class InstallPlan(msgspec.Struct, frozen=True):
    """An InstallPlan."""

    metadata: InstallPlanMeta
    csvs: tuple[str, ...]
    approval: str
    approved: bool
    phase: str
    generation: int
    """Counts up within the namespace: of two plans, the higher is the newer."""
    packages: dict[str, str]
    """By CSV, as far as the plan names them while it is open; empty where it contradicts itself."""
    brings: dict[str, str]
    """The packages of the Subscriptions that the plan creates, by name."""
    versions: dict[str, str] = NOTHING
    """By CSV, the version of its bundle where the name has another: a rebuild is named like a pre-release."""

    @property
    def stamp(self) -> ApprovalStamp:
        return self.metadata.annotations

    @property
    def signature(self) -> ManualApproval:
        return self.metadata.signature

    @property
    def fingerprint(self) -> str:
        """By which people approve it: another plan of that name, or with other CSVs, has another one."""
        return sha256([self.metadata.uid, *sorted(self.csvs)]) if self.metadata.uid else ""

    @property
    def content(self) -> str:
        """What plans of a namespace have in common that install the same CSVs."""
        return " ".join((self.metadata.namespace, *sorted(set(self.csvs))))

    @property
    def is_open(self) -> bool:
        """Whether it requires an approval that OLM would accept now."""
        return not self.approved and self.approval == "Manual" and self.phase == REQUIRES_APPROVAL


class SubscriptionMeta(Meta, frozen=True, rename="camel"):
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    annotations: dict[str, str] = msgspec.field(default_factory=dict)


class SubscriptionSpec(msgspec.Struct, frozen=True):
    package: str = msgspec.field(default="", name="name")
    starting_csv: str = msgspec.field(default="", name="startingCSV")
    approval: str = msgspec.field(default="Automatic", name="installPlanApproval")


class SubscriptionStatus(msgspec.Struct, frozen=True):
    current_csv: str = msgspec.field(default="", name="currentCSV")
    installed_csv: str = msgspec.field(default="", name="installedCSV")
    plan_generation: int = msgspec.field(default=0, name="installPlanGeneration")


class Subscription(msgspec.Struct, frozen=True):
    """A Subscription."""

    metadata: SubscriptionMeta
    spec: SubscriptionSpec = SubscriptionSpec()
    status: SubscriptionStatus = SubscriptionStatus()

    @property
    def is_generated(self) -> bool:
        """Whether OLM made it for a dependency; else a person did."""
        return "olm.generated-by" in self.metadata.annotations


class CsvMeta(Meta, frozen=True):
    labels: dict[str, str] = msgspec.field(default_factory=dict)


class InstalledCsv(msgspec.Struct, frozen=True):
    """A ClusterServiceVersion in a namespace, however it was installed."""

    metadata: CsvMeta
    package: str = ""
    """Of its bundle; empty if it has none, as one that was created manually."""
    version: str = ""
    """Of its bundle, if that is known."""

    @property
    def is_unmarked(self) -> bool:
        """Whether neither bundle nor label names its package."""
        return not self.package and not any(label.startswith(PACKAGE_LABEL) for label in self.metadata.labels)

    def is_of(self, package: str) -> bool:
        """By its bundle, or by the label `operators.coreos.com/<package>.<namespace>`, which OLM cuts if too long.

        One without both may be of any package: the package must not be taken for absent.
        """
        if self.package:
            return self.package == package
        if self.is_unmarked:
            return True
        name = f"{package}.{self.metadata.namespace}"[:LONGEST_LABEL].rstrip("._-")
        return f"{PACKAGE_LABEL}{name}" in self.metadata.labels


def decode_csv(raw: bytes) -> InstalledCsv:
    wide = _WIDE_CSV.decode(raw)
    kept = wide.metadata
    packages = _packages_in(kept.annotations.properties)
    metadata = CsvMeta(kept.name, kept.namespace, kept.uid, kept.resource_version, labels=kept.labels)
    package, version = _agreed(one.package_name for one in packages), _agreed(one.version for one in packages)
    return InstalledCsv(metadata, intern(package), intern(version))


def decode_plan(raw: bytes) -> InstallPlan:
    """Decode a plan and keep what matters: of its steps only the packages, and only while it is open."""
    wide = _WIDE_PLAN.decode(raw)
    plan = InstallPlan(
        wide.metadata.narrowed(),
        csvs=tuple(map(intern, wide.spec.cluster_service_version_names)),
        approval=intern(wide.spec.approval),
        approved=wide.spec.approved,
        phase=intern(wide.status.phase),
        generation=wide.spec.generation,
        packages=NOTHING,
        brings=NOTHING,
        versions=NOTHING,
    )
    if not plan.is_open:
        return plan
    brings = {
        step.resource.name: _package_of_subscription(step.resource.manifest)
        for step in wide.status.plan
        if step.resource.is_subscription
    }
    mentions = _mentions(wide.status, brings)
    return msgspec.structs.replace(
        plan,
        packages={
            intern(csv): intern(_agreed(one.package_name for one in packages))
            for csv, packages in mentions.items()
            if packages
        },
        brings=brings or NOTHING,
        versions=_versions_not_in_names(mentions) or NOTHING,
    )


def _mentions(status: _WideStatus, brings: Mapping[str, str]) -> dict[str, list[_Package]]:
    """Every mention of the package and the version of each CSV in the plan."""
    mentions: dict[str, list[_Package]] = {}
    for lookup in status.bundle_lookups:
        mentions.setdefault(lookup.identifier, []).extend(_packages_in(lookup.properties))
    for step in status.plan:
        resource = step.resource
        if resource.kind == CLUSTER_SERVICE_VERSION.name:
            mentions.setdefault(resource.name or step.resolving, []).extend(_packages_of_csv(resource.manifest))
        elif resource.is_subscription:
            mentions.setdefault(step.resolving, []).append(_Package(brings[resource.name]))
    return mentions


def _versions_not_in_names(mentions: Mapping[str, Iterable[_Package]]) -> dict[str, str]:
    agreed = {csv: _agreed(one.version for one in packages if one.version) for csv, packages in mentions.items()}
    return {csv: version for csv, version in agreed.items() if version and str(version_of(csv)) != version}


def _agreed(words: Iterable[str]) -> str:
    """The value that all have; empty where they differ."""
    distinct = set(words)
    return distinct.pop() if len(distinct) == 1 else ""


class _WideSpec(msgspec.Struct, rename="camel"):
    approval: str = ""
    approved: bool = False
    generation: int = 0
    cluster_service_version_names: tuple[str, ...] = ()


class _PlanResource(msgspec.Struct):
    group: str = ""
    kind: str = ""
    name: str = ""
    manifest: msgspec.Raw = msgspec.Raw(b'""')

    @property
    def is_subscription(self) -> bool:
        return (self.group, self.kind) == (SUBSCRIPTION.group, SUBSCRIPTION.name)


class _Step(msgspec.Struct):
    resolving: str = ""
    resource: _PlanResource = msgspec.field(default_factory=_PlanResource)


class _Lookup(msgspec.Struct):
    identifier: str = ""
    properties: str = ""


class _WideStatus(msgspec.Struct, rename="camel"):
    phase: str = ""
    plan: list[_Step] = msgspec.field(default_factory=list)
    bundle_lookups: list[_Lookup] = msgspec.field(default_factory=list)


class _PlanAnnotations(ApprovalStamp, frozen=True, gc=False):
    user: str = msgspec.field(default="", name=APPROVED_BY_USER)
    comment: str = msgspec.field(default="", name=APPROVAL_COMMENT)
    approvals: str = msgspec.field(default="", name=APPROVALS)
    required_approvals: str = msgspec.field(default="", name=REQUIRED_APPROVALS)


class _WidePlanMeta(Meta, frozen=True, rename="camel"):
    creation_timestamp: datetime = EPOCH
    annotations: _PlanAnnotations = _PlanAnnotations()
    managed_fields: msgspec.Raw = NO_FIELDS

    def narrowed(self) -> InstallPlanMeta:
        """Without managedFields, and without a stamp or signature that somebody else wrote."""
        notes = self.annotations
        stamp = ApprovalStamp(notes.by, notes.at, notes.because)
        signature = ManualApproval(notes.user, notes.at, notes.comment) if notes.user else NOT_SIGNED
        return InstallPlanMeta(
            self.name,
            self.namespace,
            self.uid,
            self.resource_version,
            self.creation_timestamp,
            stamp if is_our_stamp(stamp, self.managed_fields) else NOT_STAMPED,
            signature if is_our_stamp(signature, self.managed_fields) else NOT_SIGNED,
            notes.approvals if len(notes.approvals) <= LONGEST_TEXT else "",
            int(notes.required_approvals) if _COUNT.fullmatch(notes.required_approvals) else 0,
        )


class _WidePlan(msgspec.Struct):
    metadata: _WidePlanMeta
    spec: _WideSpec = msgspec.field(default_factory=_WideSpec)
    status: _WideStatus = msgspec.field(default_factory=_WideStatus)


class _Property(msgspec.Struct):
    type: str
    value: msgspec.Raw


class _Properties(msgspec.Struct):
    properties: list[_Property] = msgspec.field(default_factory=list)


class _Package(msgspec.Struct, rename="camel"):
    package_name: str
    version: str = ""


class _CsvAnnotations(msgspec.Struct):
    properties: str = msgspec.field(default="", name="operatorframework.io/properties")


class _CsvMetadata(msgspec.Struct):
    annotations: _CsvAnnotations = msgspec.field(default_factory=_CsvAnnotations)


class _CsvManifest(msgspec.Struct):
    """A ClusterServiceVersion, or a reference to an unpacked bundle that carries its properties itself."""

    metadata: _CsvMetadata = msgspec.field(default_factory=_CsvMetadata)
    properties: str = ""


class _WideCsvMeta(CsvMeta, frozen=True, rename="camel"):
    annotations: _CsvAnnotations = msgspec.field(default_factory=_CsvAnnotations)


class _WideCsv(msgspec.Struct):
    metadata: _WideCsvMeta


_WIDE_CSV: msgspec.json.Decoder[_WideCsv] = msgspec.json.Decoder(_WideCsv)
_WIDE_PLAN: msgspec.json.Decoder[_WidePlan] = msgspec.json.Decoder(_WidePlan)


def _packages_of_csv(manifest: msgspec.Raw) -> list[_Package]:
    try:
        csv = msgspec.json.decode(msgspec.json.decode(manifest, type=str), type=_CsvManifest)
    except UNREADABLE:
        return []
    return _packages_in(csv.metadata.annotations.properties) + _packages_in(csv.properties)


def _packages_in(properties: str) -> list[_Package]:
    """The values of `olm.package` in OLM's list of properties."""
    try:
        listed = msgspec.json.decode(properties or "{}", type=_Properties)
        return [msgspec.json.decode(one.value, type=_Package) for one in listed.properties if one.type == "olm.package"]
    except UNREADABLE:
        return []


def _package_of_subscription(manifest: msgspec.Raw) -> str:
    try:
        text = msgspec.json.decode(manifest, type=str)
        return msgspec.json.decode(text, type=_SubscriptionManifest).spec.package
    except UNREADABLE:
        return ""


class _SubscriptionManifest(msgspec.Struct):
    spec: SubscriptionSpec = SubscriptionSpec()
