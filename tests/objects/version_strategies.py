"""Semantic versions, made up by hypothesis: few numbers, so that they often meet."""

from __future__ import annotations

from hypothesis import strategies as st

from virt_steward.objects.versions import Version

_numbers = st.integers(0, 3)
_identifiers = st.integers(0, 11) | st.sampled_from(("alpha", "beta", "rc", "x-1", "-", "A"))
_prereleases = st.lists(_identifiers, max_size=3).map(tuple)

releases = st.builds(Version, _numbers, _numbers, _numbers)
versions = st.builds(Version, _numbers, _numbers, _numbers, _prereleases, st.sampled_from(("", "build.7")))
