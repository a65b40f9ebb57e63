"""The autopilot: all assets with state and reason, and one asset with its checks, overrides and events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from virt_steward.console.diffs import field_lines
from virt_steward.console.ownership import owners_of_object
from virt_steward.console.page_context import PageContent, matches, not_found
from virt_steward.controllers.autopilot import annotation_keys
from virt_steward.controllers.autopilot.decide import Wanted
from virt_steward.controllers.autopilot.overrides.exclusions import UnreadableExclusions
from virt_steward.controllers.autopilot.overrides.scope import Idle, Only
from virt_steward.insight.assets.staged import review_staged
from virt_steward.insight.assets.state import STEERING, decisions_about
from virt_steward.objects.corekinds import NODE
from virt_steward.plans.blast_radius import Census
from virt_steward.platform.hco import HYPERCONVERGED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from virt_steward.console.live import Topic
    from virt_steward.console.page_context import PageContext
    from virt_steward.insight.assets.staged import StagedAsset
    from virt_steward.insight.assets.state import AssetState

SHOWN = 200
TOPICS: frozenset[Topic] = frozenset({"autopilot", "activity"})
TONES = {
    "In place": "ok",
    "Not there yet": "info",
    "Differs": "warn",
    "Paused": "warn",
    "Staged": "info",
    "Waits": "info",
    "Fails": "bad",
    "Left alone": "muted",
}
ORDER = ("Fails", "Paused", "Differs", "Staged", "Not there yet", "Waits", "In place", "Left alone")


async def page(context: PageContext) -> PageContent:
    states = context.assets
    chosen = context.query.get("state", "")
    shown = [
        one
        for one in states
        if chosen in ("", one.word)
        and matches(f"{one.asset.name} {one.asset.summary} {one.ref} {one.why} {one.asset.group}", context.search)
    ]
    counts = {word: sum(one.word == word for one in states) for word in ORDER}
    values = {
        "scope": _scope(context),
        "rows": sorted(shown, key=lambda one: ORDER.index(one.word))[:SHOWN],
        "more": max(len(shown) - SHOWN, 0),
        "counts": {word: count for word, count in counts.items() if count},
        "chosen": chosen,
        "tones": TONES,
        "hidden": len(context.cache.assets.states) - len(states),
        "is_behind": context.cache.assets.states.is_behind,
    }
    return PageContent("autopilot.html", "Autopilot", values, TOPICS, kinds=(HYPERCONVERGED,))


async def asset(context: PageContext) -> PageContent:
    name = context.match["name"]
    state = next((one for one in context.assets if one.asset.name == name), None)
    if state is None:
        return not_found(f"asset {name}", HYPERCONVERGED)
    decision, ref, hco = state.decision, state.ref, context.cache.assets.view.options.hco
    staged = await _review(context, state) if state.staged else None
    may_change = await context.may("patch", ref.kind, ref.key.namespace)
    values = {
        "state": state,
        "tone": TONES[state.word],
        "checks": decision.checks,
        "desired": decision.outcome if isinstance(decision.outcome, Wanted) else None,
        "overrides": {name: value for name, value in decision.overrides.items() if name in STEERING},
        "governed": sorted(context.cache.assets.view.governed(state.asset).paths),
        "annotations": annotation_keys,
        "command": _command(state.ref.kind.plural, state.ref.kind.group, ref.key.namespace, ref.key.name),
        "may_resume": may_change and bool(state.live_summary and state.live_summary.is_paused),
        "decisions": decisions_about(name, state.live_summary, _annotations_of_hco(context)),
        "staged": staged,
        "staged_lines": field_lines(staged.fields) if staged else (),
        "may_release": bool(state.staged) and await context.may("patch", HYPERCONVERGED, hco.namespace),
        "owners": await owners_of_object(context, ref) if state.live_summary else None,
        "events": context.events_about(str(ref))[:30],
    }
    return PageContent("asset.html", name, values, TOPICS | {"rollout"} if state.staged else TOPICS)


def _annotations_of_hco(context: PageContext) -> Mapping[str, str]:
    observation = context.cache.assets.view.seen()
    return observation.context.hco.annotations if observation else {}


async def _review(context: PageContext, state: AssetState) -> StagedAsset | None:
    """The staged change with what it changes; nodes and VMs are counted only if the viewer may list them."""
    census = Census(tuple(context.cache.nodes), await context.running_vms()) if context.scope.sees(NODE) else None
    return review_staged(context.cache.assets.view, state.asset, state.decision, context.now, census)


def _scope(context: PageContext) -> dict[str, str]:
    """Whether the autopilot is on, and for which assets, by the annotations of the HyperConverged."""
    view = context.cache.assets.view
    observation = view.seen() if context.sees_hco else None
    if observation is None and HYPERCONVERGED in context.cache.denied():
        return {
            "word": "Unknown",
            "tone": "warn",
            "why": f"The console may not read HyperConverged {view.options.hco}",
        }
    if observation is None:
        return {
            "word": "Off",
            "tone": "muted",
            "why": f"HyperConverged {view.options.hco} not found, or you may not list it",
        }
    if isinstance(observation.scope, Idle):
        return {"word": "Idle", "tone": "warn" if observation.scope.typo else "muted", "why": observation.scope.why}
    if isinstance(observation.exclusions, UnreadableExclusions):
        return {
            "word": "Held",
            "tone": "bad",
            "why": f"Nothing is written: {annotation_keys.EXCLUDED} is invalid: {observation.exclusions.why}",
        }
    if isinstance(observation.scope, Only):
        return {"word": "On", "tone": "ok", "why": f"Only for {', '.join(sorted(observation.scope.names))}"}
    return {"word": "On", "tone": "ok", "why": "For every asset that fits this cluster"}


def _command(plural: str, group: str, namespace: str, name: str) -> str:
    """The start of the kubectl command that annotates this object."""
    place = f" -n {namespace}" if namespace else ""
    return f"kubectl annotate{place} {plural}{f'.{group}' if group else ''}/{name}"
