"""Ranges of semantic versions, such as `>=1.4.0 <2.0.0 || ~2.1`.

Comparisons side by side or with a comma between them must all hold; `||` parts alternatives. A number that is left out
or written as `x` stands for any. A pre-release is in a range only where a comparison names a pre-release of the same
three numbers: who asks for `>=1.4.0` does not ask for 2.0.0-rc.1.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import takewhile

from virt_steward.objects.quoting import quoted
from virt_steward.objects.versions import LONGEST, BadVersion, Version

_Numbers = tuple[int, ...]

_NUMBER = "0|[1-9][0-9]*|[xX*]"
_COMPARISON = re.compile(
    r"(?P<sign>==?|!=?|[<>]=?|~|\^)?v?"
    rf"(?P<version>(?P<major>{_NUMBER})(\.(?P<minor>{_NUMBER}))?(\.(?P<patch>{_NUMBER}))?(?P<suffix>[-+].+)?)"
)
_SPACE_AFTER_SIGN = re.compile("(?<=[=!<>~^]) (?=[v0-9xX*])")
_SEPARATOR = re.compile(" *, *| +")

_SAME_SIGN = {None: "=", "==": "=", "!=": "!"}

_LOWEST = Version(0, 0, 0, (0,))
_NOTHING = (_LOWEST, _LOWEST)


class BadRange(ValueError):
    """The text is not a range."""


@dataclass(frozen=True, slots=True)
class _Stretch:
    """What one comparison allows: all versions from the first up to, but without, the end."""

    first: Version = _LOWEST
    end: Version | None = None
    left_out: bool = False
    """The complement: all other versions."""
    prerelease_of: tuple[int, int, int] | None = None

    def __contains__(self, version: Version) -> bool:
        within = self.first <= version and (self.end is None or version < self.end)
        return within is not self.left_out


@dataclass(frozen=True, slots=True)
class Range:
    """A set of versions: `version in range`."""

    text: str
    alternatives: tuple[tuple[_Stretch, ...], ...]

    @classmethod
    def parse(cls, text: str) -> Range:
        if len(text) > LONGEST:
            raise BadRange(f"a range has at most {LONGEST} characters, this one has {len(text)}")
        parts = _SPACE_AFTER_SIGN.sub("", text).split("||")
        return cls(text, tuple(tuple(map(_comparison, _SEPARATOR.split(part.strip(" ")))) for part in parts))

    def __contains__(self, version: Version) -> bool:
        return any(_all_hold(comparisons, version) for comparisons in self.alternatives)

    def __str__(self) -> str:
        return self.text


def _all_hold(comparisons: tuple[_Stretch, ...], version: Version) -> bool:
    if version.prerelease and all(stretch.prerelease_of != version.core for stretch in comparisons):
        return False
    return all(version in stretch for stretch in comparisons)


def _comparison(text: str) -> _Stretch:
    found = _COMPARISON.fullmatch(text)
    if not found:
        raise BadRange(f"{quoted(text)} is not a comparison of semantic versions, such as >=1.4.0 or ~1.4")
    given = [part for part in found.group("major", "minor", "patch") if part]
    numbers = tuple(map(int, takewhile(str.isdigit, given)))
    if any(map(str.isdigit, given[len(numbers) :])):
        raise BadRange(f"{quoted(text)} has a number after a wildcard")
    sign = _SAME_SIGN.get(found["sign"], found["sign"])
    if len(numbers) == 3:
        return _compared(sign, numbers, _version(found["version"]).prerelease)
    if found["suffix"]:
        raise BadRange(f"{quoted(text)} needs three numbers to name a pre-release or a build")
    return _compared(sign, numbers, ())


def _version(text: str) -> Version:
    try:
        return Version.parse(text)
    except BadVersion as bad:
        raise BadRange(str(bad)) from bad


def _compared(sign: str, numbers: _Numbers, prerelease: tuple[int | str, ...]) -> _Stretch:
    first = _first(numbers, prerelease)
    after = _first(numbers, (*prerelease, 0)) if prerelease else _next(numbers)
    stretches: dict[str, tuple[Version, Version | None]] = {
        "=": (first, after),
        "!": (first, after),
        ">": (after, None) if after else _NOTHING,
        ">=": (first, None),
        "<": (_LOWEST, first),
        "<=": (_LOWEST, after),
        "~": (first, _next(numbers[:2])),
        "^": (first, _next(numbers[: _places_kept(numbers)])),
    }
    left_out = sign == "!"
    named = first.core if prerelease and not left_out else None  # excluding one pre-release includes no other
    return _Stretch(*stretches[sign], left_out=left_out, prerelease_of=named)


def _first(numbers: _Numbers, prerelease: tuple[int | str, ...]) -> Version:
    """Return the lowest version that begins with these numbers, or the very one that all three of them name."""
    major, minor, patch = (*numbers, 0, 0, 0)[:3]
    return Version(major, minor, patch, prerelease if len(numbers) == 3 else (0,))


def _next(numbers: _Numbers) -> Version | None:
    """Return the lowest version above all that begin with these numbers; None if all versions do."""
    if not numbers:
        return None
    major, minor, patch = (*numbers[:-1], numbers[-1] + 1, 0, 0)[:3]
    return Version(major, minor, patch, (0,))


def _places_kept(numbers: _Numbers) -> int:
    """Count the numbers up to the first that is not zero: a change of that one breaks what `^` promises."""
    return next((place for place, number in enumerate(numbers, 1) if number), len(numbers))
