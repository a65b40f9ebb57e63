"""The profiles, one per file. To add one: its file, a line here, and its options in `apis/virtplatformconfig.py`.

Not here: looking at the cluster or changing it; a profile says what it would read and what it wants.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from virt_steward.controllers.advisor.profiles import example_profile, load_aware_rebalancing, virt_higher_density

if TYPE_CHECKING:
    from collections.abc import Iterable

    from virt_steward.controllers.advisor.options import AdvisorOptions
    from virt_steward.controllers.advisor.profiles.profile import Profile
    from virt_steward.objects.paths import Pointer


def profiles(options: AdvisorOptions) -> tuple[Profile, ...]:
    """All that there are, for the platform that the options name."""
    return (
        load_aware_rebalancing.profile(options),
        virt_higher_density.profile(options),
        example_profile.profile(options),
    )


def schemas_of(known: Iterable[Profile]) -> dict[str, tuple[Pointer, ...]]:
    """Which fields of which CRDs these profiles ask about."""
    return {crd: paths for profile in known for crd, paths in profile.schemas.items()}
