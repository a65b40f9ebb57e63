"""The autopilot holds changes back that reboot nodes, and leaves ignored fields alone."""

import hashlib
import json
from collections.abc import Iterator
from datetime import datetime, timedelta

from tests.checker.facts import Facts, Violation, is_always
from tests.checker.history import History, Object, Ref, Version, value_at

GROUP = "machineconfiguration.openshift.io"
REBOOTING = tuple(f"{plural}.{GROUP}" for plural in ("machineconfigs", "kubeletconfigs", "containerruntimeconfigs"))
POOLS = f"machineconfigpools.{GROUP}"
HCO = "hyperconvergeds.hco.kubevirt.io"
STAGING = "virt-platform-autopilot-mc-staging"
PREFIX = "platform.kubevirt.io/"
IGNORED = f"{PREFIX}ignore-fields"
DELETABLE = {"virt-platform-autopilot-alerts": "prometheus-alerts"}
"""What the workload opts out of: the name of the object, and that of the asset."""
ROLE = f"{GROUP}/role"


def reboots_are_released(history: History, facts: Facts) -> Iterator[Violation]:
    """A change of an object that reboots nodes is a creation, was released, or joins a rollout of its pool.

    Modelled are the policies `coalesce`, `immediate`, `approve` and `window`, without deadlines.
    """
    for version in facts.by(history, "autopilot"):
        if version.ref.resource not in REBOOTING or version.uncertain or same_spec(version):
            continue
        policies = {_annotation(one, "rollout") or "coalesce" for one in _seen(history, facts, HCO, version)}
        if "immediate" in policies or (version.is_creation and "coalesce" in policies):
            continue
        if "window" in policies and any(_is_in_window(one) for one in _seen(history, facts, HCO, version)):
            continue
        if _is_released(history, facts, version):
            continue
        if "coalesce" in policies and _is_rolling(history, facts, version):
            continue
        yield Violation("rollout", "changed what reboots nodes without a release or a rollout", version)


def _is_in_window(platform: Version) -> bool:
    return _annotation(platform, "rollout") == "window" and is_always(_annotation(platform, "rollout-window"))


def same_spec(version: Version) -> bool:
    return version.obj is not None and value_at(version.earlier, ("spec",), ...) == version.get("spec", default=...)


def _annotation(version: Version, name: str) -> str:
    return str(version.get("metadata", "annotations", PREFIX + name, default=""))


def _seen(history: History, facts: Facts, resource: str, version: Version) -> Iterator[Version]:
    for ref in history.refs(resource):
        yield from facts.view(history, ref, version)


def _is_released(history: History, facts: Facts, version: Version) -> bool:
    """The HyperConverged names the id of a change of this object that was staged before."""
    released = {
        one.strip()
        for seen in _seen(history, facts, HCO, version)
        for one in _annotation(seen, "rollout-release").split(",")
    }
    kind = value_at(version.obj or version.earlier, ("kind",), "")
    keys = (version.ref.name, f"{kind.lower()}.{version.ref.name}")
    staged = (one for ref in history.refs("configmaps") if ref.name == STAGING for one in history.of(ref))
    return any(
        name in keys and release_id(json.loads(text)) in released
        for one in staged
        if one.number < version.number
        for name, text in one.get("data", default={}).items()
    )


def release_id(entry: Object) -> str:
    """`asset@hash`: of the asset, what is wanted, the live object, and when it was staged."""
    at = datetime.fromisoformat(entry["stagedAt"]).isoformat()
    parts = (entry["asset"], entry["desiredHash"], entry.get("liveHash", ""), at)
    return f"{entry['asset']}@{hashlib.sha256(' '.join(parts).encode()).hexdigest()[:12]}"


def _is_rolling(history: History, facts: Facts, version: Version) -> bool:
    """Nodes of a matching pool reboot anyway: it says so, or its sources have changed since its configuration did."""
    labels = value_at(version.obj or version.earlier, ("metadata", "labels"), {}) or {}
    for ref in history.refs(POOLS):
        if version.ref.resource == REBOOTING[0] and labels.get(ROLE) not in (ref.name, None):
            continue
        seen = list(facts.view(history, ref, version))
        if any(_updates(one.obj) for one in seen) or _has_news(history, ref, version, facts.tolerance):
            return True
    return False


def _updates(pool: Object | None) -> bool:
    conditions = value_at(pool, ("status", "conditions"), ())
    running = [value_at(pool, (part, "configuration", "name")) for part in ("spec", "status")]
    return running[0] != running[1] or any((one["type"], one["status"]) == ("Updating", "True") for one in conditions)


def _has_news(history: History, pool: Ref, version: Version, tolerance: float) -> bool:
    """Somebody wrote a source of the pool, and the pool has not taken it up yet, or did so a moment ago."""
    taken_up = [
        one.write.answered
        for one in history.of(pool)
        if one.number < version.number
        and one.before
        and one.get("spec", "configuration", "name") != value_at(one.earlier, ("spec", "configuration", "name"))
    ]
    last = taken_up[-1] if taken_up else None
    if last and last >= version.write.received - timedelta(seconds=tolerance):
        return True
    return any(
        other is not version
        and other.number < version.number
        and other.ref.resource in REBOOTING
        and not other.ref.name.startswith("rendered-")
        and not same_spec(other)
        and (last is None or other.write.answered >= last)
        for other in history.versions
    )


def deletions_are_opted_out(history: History, facts: Facts) -> Iterator[Violation]:
    """Deleted is what the autopilot created, once a person has opted out of it and wants it deleted."""
    own = list(facts.by(history, "autopilot"))
    for version in own:
        if version.obj is not None or version.before is None or version.uncertain:
            continue
        asset = DELETABLE.get(version.ref.name, "")
        is_opted_out = any(
            _annotation(one, "on-opt-out") == "delete" and asset not in _annotation(one, "autopilot").split(",")
            for one in _seen(history, facts, HCO, version)
        )
        if not asset or not is_opted_out:
            yield Violation("opt-out", "deleted an object that nobody has opted out of", version)
        elif not any(one.uid == version.before.uid and one.is_creation for one in own if one.ref == version.ref):
            yield Violation("opt-out", "deleted an object that it had not created", version)


def ignored_fields_are_untouched(history: History, facts: Facts) -> Iterator[Violation]:
    """An apply carries the resourceVersion that it was computed from, so the version before is what was seen."""
    for version in facts.by(history, "autopilot"):
        if version.before is None or version.obj is None or version.uncertain:
            continue
        for pointer in str(value_at(version.earlier, ("metadata", "annotations", IGNORED), "")).split(","):
            path = tuple(part.replace("~1", "/").replace("~0", "~") for part in pointer.strip().split("/")[1:])
            was, became = value_at(version.earlier, path), version.get(*path)
            if path and was != became:
                yield Violation("mask", f"changed the ignored field {pointer} from {was!r} to {became!r}", version)
