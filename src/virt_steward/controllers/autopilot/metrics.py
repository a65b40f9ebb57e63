"""The metrics of the autopilot: both sets of names, those of its design and those that dashboards know."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import Counter, Gauge, Histogram

if TYPE_CHECKING:
    from collections.abc import Collection

    from prometheus_client import CollectorRegistry

    from virt_steward.objects.identity import Kind, Ref

_OBJECT = ("kind", "name", "namespace")
STAGED = 2
CUSTOMIZATIONS = ("patch", "ignore", "unmanaged")


class AutopilotMetrics:
    """Series per object: each exists only while it means something."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def gauge(name: str, text: str, labels: tuple[str, ...] = _OBJECT) -> Gauge:
            return Gauge(f"kubevirt_autopilot_{name}", text, labels, registry=registry)

        def counter(name: str, text: str, labels: tuple[str, ...] = ("asset",)) -> Counter:
            return Counter(f"kubevirt_autopilot_{name}", text, labels, registry=registry)

        self._compliance = gauge(
            "compliance_status", "1 if the live object is in sync, 0 if it differs or fails, 2 if staged."
        )
        self._paused = gauge("paused_resources", "1 while an object is paused after an edit war.")
        self._report_only = gauge("report_only", "1 while an object differs and is only reported, by request.")
        self._customization = gauge(
            "customization_info", "1 for each kind of override on an object.", (*_OBJECT, "type")
        )
        dependency = ("group", "version", "kind")
        self._missing = gauge("missing_dependency", "1 if a requested kind is not installed, else 0.", dependency)
        self._opted_in = gauge("dependency_opted_in", "1 if an enabled asset needs the kind, else 0.", dependency)
        self._render_failed = gauge(
            "render_failed",
            "1 while an asset cannot be rendered: because of the configuration of the cluster, or internally.",
            ("asset", "reason", "code"),
        )
        self._render_failures: dict[str, tuple[str, str]] = {}
        self._tombstones = gauge(
            "tombstone_status",
            "Of an obsolete object: 1 exists, 0 gone, -1 cannot be deleted, -2 not created by the autopilot.",
        )
        staged = ("machineconfig", "pool")
        self._staged = gauge("machineconfig_update_staged", "1 while a change that reboots nodes is staged.", staged)
        self._staged_since = gauge(
            "machineconfig_update_staged_since_seconds", "The Unix time at which it was staged.", staged
        )
        self._staged_pools: dict[Ref, tuple[str, ...]] = {}
        self._thrashing = counter("thrashing", "Edit wars, counted once each.", _OBJECT)
        self._duration = Histogram(
            "kubevirt_autopilot_reconcile_duration_seconds",
            "Seconds that the reconciliation of an object takes.",
            _OBJECT,
            buckets=(0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
            registry=registry,
        )
        self._reconciles = counter("asset_reconcile", "Reconciliations of an asset.")
        self._errors = counter("asset_reconcile_errors", "Reconciliations of an asset that failed.")
        self._applies = counter("asset_apply", "Writes of an asset.")
        self._drifts = counter("drift_detected", "Times that an asset has drifted.")
        self._delays = counter("throttle_delayed", "Writes of an asset that were throttled.")

    def reconciled(self, asset: str, ref: Ref, seconds: float) -> None:
        self._reconciles.labels(asset).inc()
        self._duration.labels(*_labels(ref)).observe(seconds)

    def complies(self, ref: Ref, *, complies: bool, only_reported: bool = False) -> None:
        """`only_reported`: it differs and is not corrected, by request."""
        self._unstage(ref)
        self._compliance.labels(*_labels(ref)).set(int(complies))
        if only_reported:
            self._report_only.labels(*_labels(ref)).set(1)
        else:
            self._report_only.remove(*_labels(ref))

    def staged(self, ref: Ref, pools: tuple[str, ...], since: float) -> None:
        """A change of the object waits since this Unix time; nodes of these pools would reboot."""
        self._unstage(ref)
        self._compliance.labels(*_labels(ref)).set(STAGED)
        self._report_only.remove(*_labels(ref))
        self._staged_pools[ref] = pools
        for pool in pools:
            self._staged.labels(ref.key.name, pool).set(1)
            self._staged_since.labels(ref.key.name, pool).set(since)

    def _unstage(self, ref: Ref) -> None:
        for pool in self._staged_pools.pop(ref, ()):
            self._staged.remove(ref.key.name, pool)
            self._staged_since.remove(ref.key.name, pool)

    def paused(self, ref: Ref, *, paused: bool) -> None:
        self._paused.labels(*_labels(ref)).set(int(paused))

    def customized(self, ref: Ref, types: Collection[str]) -> None:
        for name in CUSTOMIZATIONS:
            if name in types:
                self._customization.labels(*_labels(ref), name).set(1)
            else:
                self._customization.remove(*_labels(ref), name)

    def unknown(self, ref: Ref) -> None:
        """Whether the object complies is unknown."""
        self._unstage(ref)
        for metric in (self._compliance, self._report_only):
            metric.remove(*_labels(ref))

    def forget(self, ref: Ref) -> None:
        """Nothing is wanted of the object any more: no series may remain."""
        self.customized(ref, ())
        self._unstage(ref)
        for metric in (self._compliance, self._paused, self._report_only, self._duration):
            metric.remove(*_labels(ref))

    def dependency(self, kind: Kind, version: str, *, opted_in: bool, missing: bool) -> None:
        self._opted_in.labels(kind.group, version, kind.name).set(int(opted_in))
        self._missing.labels(kind.group, version, kind.name).set(int(missing))

    def forget_dependency(self, kind: Kind, version: str) -> None:
        for metric in (self._opted_in, self._missing):
            metric.remove(kind.group, version, kind.name)

    def rendered(self, asset: str) -> None:
        """The asset can be rendered, or nobody wants it rendered."""
        if before := self._render_failures.pop(asset, None):
            self._render_failed.remove(asset, *before)

    def render_failed(self, asset: str, code: str) -> None:
        """`code` is what to configure; empty if the asset itself is wrong."""
        self.rendered(asset)
        labels = ("configuration", code) if code else ("internal", "TemplateError")
        self._render_failures[asset] = labels
        self._render_failed.labels(asset, *labels).set(1)

    def tombstone(self, ref: Ref, status: int) -> None:
        self.unknown(ref)
        self._tombstones.labels(*_labels(ref)).set(status)

    def forget_tombstone(self, ref: Ref) -> None:
        self.unknown(ref)
        self._tombstones.remove(*_labels(ref))

    def edit_war(self, ref: Ref) -> None:
        self._thrashing.labels(*_labels(ref)).inc()

    def failed(self, asset: str) -> None:
        self._errors.labels(asset).inc()

    def applied(self, asset: str) -> None:
        self._applies.labels(asset).inc()

    def drifted(self, asset: str) -> None:
        self._drifts.labels(asset).inc()

    def delayed(self, asset: str) -> None:
        self._delays.labels(asset).inc()


def _labels(ref: Ref) -> tuple[str, str, str]:
    return ref.kind.name, ref.key.name, ref.key.namespace
