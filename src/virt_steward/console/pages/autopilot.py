"""The autopilot: every asset with its state and why, and one asset with all checks, overrides and events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from virt_steward.console.page_context import PageContent, holds, not_there
from virt_steward.controllers.autopilot import annotation_keys
from virt_steward.controllers.autopilot.decide import Wanted
from virt_steward.controllers.autopilot.overrides.exclusions import UnreadableExclusions
from virt_steward.controllers.autopilot.overrides.scope import Idle, Only
from virt_steward.insight.assets.state import STEERING
from virt_steward.platform.hco import HYPERCONVERGED

if TYPE_CHECKING:
    from virt_steward.console.hub import Topic
    from virt_steward.console.page_context import PageContext

SHOWN = 200
TOPICS: frozenset[Topic] = frozenset({"autopilot", "activity"})
TONES = {
    "In place": "ok",
    "Not there yet": "info",
    "Differs": "warn",
    "Paused": "warn",
    "Waits": "info",
    "Fails": "bad",
    "Left alone": "muted",
}
ORDER = ("Fails", "Paused", "Differs", "Not there yet", "Waits", "In place", "Left alone")


async def page(visit: PageContext) -> PageContent:
    states = visit.assets
    wanted = visit.query.get("state", "")
    shown = [
        one
        for one in states
        if wanted in ("", one.word)
        and holds(f"{one.asset.name} {one.asset.summary} {one.ref} {one.why} {one.asset.group}", visit.words)
    ]
    counts = {word: sum(one.word == word for one in states) for word in ORDER}
    values = {
        "scope": _scope(visit),
        "rows": sorted(shown, key=lambda one: ORDER.index(one.word))[:SHOWN],
        "more": max(len(shown) - SHOWN, 0),
        "counts": {word: count for word, count in counts.items() if count},
        "chosen": wanted,
        "tones": TONES,
        "hidden": len(visit.cache.assets.states) - len(states),
        "still": visit.cache.assets.states.is_behind,
    }
    return PageContent("autopilot.html", "Autopilot", values, TOPICS, missing=(HYPERCONVERGED,))


async def asset(visit: PageContext) -> PageContent:
    name = visit.match["name"]
    state = next((one for one in visit.assets if one.asset.name == name), None)
    if state is None:
        return not_there(f"asset {name}", HYPERCONVERGED)
    decision, ref = state.decision, state.ref
    may_change = await visit.may("patch", ref.kind, ref.key.namespace)
    values = {
        "state": state,
        "tone": TONES[state.word],
        "steps": [(check.title, check.reason) for check in decision.checks if check.result != "not reached"],
        "wanted": decision.outcome if isinstance(decision.outcome, Wanted) else None,
        "overrides": {name: value for name, value in decision.overrides.items() if name in STEERING},
        "governed": sorted(visit.cache.assets.view.governed(state.asset).paths),
        "marks": annotation_keys,
        "command": _command(state.ref.kind.plural, state.ref.kind.group, ref.key.namespace, ref.key.name),
        "may_resume": may_change and bool(state.sighted and state.sighted.is_paused),
        "told": visit.told_of(str(ref))[:30],
    }
    return PageContent("asset.html", name, values, TOPICS)


def _scope(visit: PageContext) -> dict[str, str]:
    """Whether it is on, and for what, as the HyperConverged says."""
    view = visit.cache.assets.view
    seen = view.seen() if visit.sees_hco else None
    if seen is None and HYPERCONVERGED in visit.cache.denied():
        return {
            "word": "Not known",
            "tone": "warn",
            "why": f"the console may not read HyperConverged {view.options.hco}",
        }
    if seen is None:
        return {"word": "Off", "tone": "muted", "why": f"there is no HyperConverged {view.options.hco} to be seen"}
    if isinstance(seen.scope, Idle):
        return {"word": "Idle", "tone": "warn" if seen.scope.typo else "muted", "why": seen.scope.why}
    if isinstance(seen.exclusions, UnreadableExclusions):
        return {
            "word": "Held",
            "tone": "bad",
            "why": f"{annotation_keys.EXCLUDED} cannot be read: {seen.exclusions.why}",
        }
    if isinstance(seen.scope, Only):
        return {"word": "On", "tone": "ok", "why": f"only for {', '.join(sorted(seen.scope.names))}"}
    return {"word": "On", "tone": "ok", "why": "for every asset that fits this cluster"}


def _command(plural: str, group: str, namespace: str, name: str) -> str:
    """The beginning of the command by which one steers this object."""
    place = f" -n {namespace}" if namespace else ""
    return f"kubectl annotate{place} {plural}{f'.{group}' if group else ''}/{name}"
