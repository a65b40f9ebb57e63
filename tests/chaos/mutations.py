"""Planted bugs: small patches of single functions, made in the forked process only. Each must be caught.

`python -m tests.chaos --mutation NAME --seeds 20` runs until one is. README.md beside this says what caught each.
"""

import __future__

import inspect
import textwrap
from dataclasses import dataclass
from importlib import import_module
from operator import attrgetter
from typing import Any

CONTROLLERS = "virt_steward.controllers"


@dataclass(frozen=True, slots=True)
class Patch:
    """Another text in the source of one function; all callers get it, wherever they have imported it."""

    module: str
    function: str
    old: str
    new: str

    def source(self) -> str:
        """The changed source. Raises if the code has changed so that the patch no longer fits."""
        text = textwrap.dedent(inspect.getsource(self._function()))
        if text.count(self.old) != 1:
            raise ValueError(f"{self.module}.{self.function} has {self.old!r} {text.count(self.old)} times")
        return text.replace(self.old, self.new)

    def plant(self) -> None:
        function = self._function()
        names = dict(vars(import_module(self.module)))
        flags = __future__.annotations.compiler_flag
        exec(compile(self.source(), self.module, "exec", flags), names)
        function.__code__ = _plain(names[function.__name__]).__code__

    def _function(self) -> Any:
        return _plain(attrgetter(self.function)(import_module(self.module)))


def _plain(function: Any) -> Any:
    return function.fget if isinstance(function, property) else function


@dataclass(frozen=True, slots=True)
class Mutation:
    patches: tuple[Patch, ...]

    def plant(self) -> None:
        for patch in self.patches:
            patch.plant()


def _bug(module: str, function: str, old: str, new: str) -> Mutation:
    return Mutation((Patch(module, function, old, new),))


MUTATIONS = {
    "skip-hash-check": _bug(
        f"{CONTROLLERS}.advisor.approval", "review", "if approved and approved == plan_hash:", "if approved:"
    ),
    "approve-too-early": Mutation(
        (
            Patch(
                f"{CONTROLLERS}.approver.checks",
                "requires_approval",
                "if phase != REQUIRES_APPROVAL:",
                "if phase not in ('', REQUIRES_APPROVAL):",
            ),
            Patch(
                f"{CONTROLLERS}.approver.olm",
                "InstallPlan.is_open",
                "self.phase == REQUIRES_APPROVAL",
                "self.phase in ('', REQUIRES_APPROVAL)",
            ),
        )
    ),
    "unreachable-is-empty": _bug(
        f"{CONTROLLERS}.placement.search",
        "Search._finding",
        "return answer.finding(vms)",
        "return VmAbsent() if isinstance(answer.finding(vms), Unreachable) else answer.finding(vms)",
    ),
    "count-twice": _bug(f"{CONTROLLERS}.approver.report", "fold", "        and plan.metadata.uid not in known\n", ""),
    "lead-past-expiry": _bug("virt_steward.runtime.leader", "LeaseTimes.usable", "* 2 / 3", "* 5"),
    "forget-mask": _bug(
        f"{CONTROLLERS}.autopilot.overrides.mask",
        "masked",
        "keeper = _Keeper(live or {}, manager)",
        "mask = Mask(())\n    keeper = _Keeper(live or {}, manager)",
    ),
    "force-without-listing": Mutation(
        (
            Patch("virt_steward.plans.draft", "_previewed", "for claim in _claims(tried)", "for claim in ()"),
            Patch("virt_steward.ssa.apply", "apply", "if claims != taking:", "if False:"),
        )
    ),
    "drop-watch-event": _bug(
        "virt_steward.kube.watch",
        "Watch._frame",
        "            yield event\n",
        "            if not self.position or hash(line) % 4:\n                yield event\n",
    ),
    "ignore-freeze": _bug(
        "virt_steward.holds.freezes",
        "InstallationFreeze.state",
        "if controller not in self.controllers:",
        "if True:",
    ),
    "release-too-early": _bug(
        f"{CONTROLLERS}.autopilot.rollouts.staging",
        "coalesced",
        "if case.occasion is Occasion.CREATE and",
        "if",
    ),
    "approve-unpinned": _bug(
        f"{CONTROLLERS}.approver.checks",
        "every_csv_is_wanted",
        "requested = [item for item in case.items if item.is_pinned or allowance(item, policy)]",
        "requested = list(case.items)",
    ),
    "ignore-window": _bug(f"{CONTROLLERS}.advisor.holds", "window_is_open", "match observation.window:", "match None:"),
    "ignore-gate": _bug("virt_steward.holds.gates", "closed_gates", "if closed else None", "if False else None"),
    "count-too-few": _bug(
        "virt_steward.objects.approvals", "ApprovalCount.is_complete", "self.missing == 0 and", "self.missing < 2 and"
    ),
}
"""The first ten are those that everybody would think of."""
