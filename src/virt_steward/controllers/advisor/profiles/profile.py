"""What a profile is: a declaration of what it reads, and pure functions from that to what it wants."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from virt_steward.apis.virtplatformconfig import API_VERSION, Impact, Input, ProfileOptions
from virt_steward.objects.identity import Kind, Ref

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from virt_steward.controllers.advisor.context import ProfileContext
    from virt_steward.objects.paths import Pointer
    from virt_steward.plans.intent import Intent

PREFIX = "advisor.kubevirt.io"
AUTO_CREATED = f"{PREFIX}/auto-created"


@dataclass(frozen=True, slots=True)
class Prerequisite:
    """A kind that must be served, or an object that must be there."""

    what: Kind | Ref
    remedy: str
    """What to do if it is missing."""

    @property
    def kind(self) -> Kind:
        return self.what.kind if isinstance(self.what, Ref) else self.what

    def __str__(self) -> str:
        named = str(self.what) if isinstance(self.what, Ref) else f"{self.what.name} ({self.what.group})"
        return f"{named}: {self.remedy}"


@dataclass(frozen=True, slots=True)
class ProfileDescription:
    """What people read before they turn a profile on."""

    category: str
    description: str
    impact: Impact
    """The worst that is to be expected."""
    impact_summary: str
    options: str
    """Its options in a line."""
    is_advertised: bool = True


@dataclass(frozen=True, slots=True)
class Profile:
    name: str
    about: ProfileDescription
    targets: tuple[Ref, ...]
    """All objects that it may ever write."""
    prerequisites: Callable[[ProfileOptions], tuple[Prerequisite, ...]]
    """What it needs, by its options."""
    intents: Callable[[ProfileContext], tuple[Intent, ...]]
    """What it wants, in the order of execution."""
    inputs: Callable[[ProfileContext], tuple[Input, ...]]
    """What that depends on besides the options and the targets: a change of it needs a new review."""
    schemas: Mapping[str, tuple[Pointer, ...]] = field(default_factory=dict)
    """The fields of CRDs that it asks about."""
    reads_machine_configs: bool = False

    def advertisement(self, docs_url: str) -> dict[str, Any]:
        """The object by which the cluster offers this profile, asleep until somebody wakes it."""
        needed = "; ".join(str(one) for one in self.prerequisites(ProfileOptions()))
        annotations = {
            f"{PREFIX}/description": self.about.description,
            f"{PREFIX}/impact-summary": self.about.impact_summary,
            **({f"{PREFIX}/documentation-url": f"{docs_url}/{self.name}"} if docs_url else {}),
            f"{PREFIX}/prerequisites": needed,
            f"{PREFIX}/options": self.about.options,
            AUTO_CREATED: "true",
        }
        return {
            "apiVersion": API_VERSION,
            "kind": "VirtPlatformConfig",
            "metadata": {
                "name": self.name,
                "annotations": annotations,
                "labels": {f"{PREFIX}/category": self.about.category},
            },
            "spec": {"profile": self.name, "action": "Ignore"},
        }
