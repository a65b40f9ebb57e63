"""The profiles, one per module.

To add one: its module and its line in `BUILDERS`; if it has options, their type and their field in `ProfileOptions`
(`apis/profiles.py`). A test fails if one of these is missing.

Not here: reading the cluster or changing it; a profile declares what it reads and what it wants.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from virt_steward.apis.profiles import EXAMPLE, HIGHER_DENSITY, LOAD_AWARE
from virt_steward.controllers.advisor.profiles import example_profile, load_aware_rebalancing, virt_higher_density

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from virt_steward.controllers.advisor.options import AdvisorOptions
    from virt_steward.controllers.advisor.profiles.profile import Profile
    from virt_steward.objects.paths import Pointer


BUILDERS: dict[str, Callable[[AdvisorOptions], Profile]] = {
    LOAD_AWARE: load_aware_rebalancing.profile,
    HIGHER_DENSITY: virt_higher_density.profile,
    EXAMPLE: example_profile.profile,
}
OFF_BY_DEFAULT = {EXAMPLE: "--example-profile"}
"""Profiles that are known to the CRD but off, with the flag that turns them on."""


def profiles(options: AdvisorOptions) -> tuple[Profile, ...]:
    """All profiles that the options turn on, for the platform that they name."""
    return tuple(build(options) for name, build in BUILDERS.items() if name != EXAMPLE or options.example_profile)


def schemas_of(known: Iterable[Profile]) -> dict[str, tuple[Pointer, ...]]:
    """The fields of CRDs that these profiles ask about, by CRD."""
    fields: dict[str, tuple[Pointer, ...]] = {}
    for profile in known:
        for crd, paths in profile.schemas.items():
            fields[crd] = tuple(dict.fromkeys((*fields.get(crd, ()), *paths)))
    return fields
