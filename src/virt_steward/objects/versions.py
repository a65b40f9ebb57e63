"""Semantic versions 2.0, and the versions in names of ClusterServiceVersions."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import total_ordering

from virt_steward.objects.quoting import quoted

LONGEST = 256

_NUMBER = "0|[1-9][0-9]*"
_GRAMMAR = re.compile(
    rf"({_NUMBER})\.({_NUMBER})\.({_NUMBER})"
    r"(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?"
)
_DIGITS = re.compile("[0-9]+")
_BEGINNING = re.compile(r"\.v?(?=[0-9]+(?:\.|$))")


class BadVersion(ValueError):
    """The text is not a semantic version."""


@total_ordering
@dataclass(frozen=True, slots=True)
class Version:
    """Ordered by precedence, which ignores build metadata."""

    major: int
    minor: int
    patch: int
    prerelease: tuple[int | str, ...] = ()
    build: str = field(default="", compare=False)

    @classmethod
    def parse(cls, text: str) -> Version:
        found = _GRAMMAR.fullmatch(text) if len(text) <= LONGEST else None
        if not found:
            raise BadVersion(f"{quoted(text)} is not a semantic version, such as 1.4.0 or 2.0.0-rc.1")
        major, minor, patch, prerelease, build = found.groups()
        identifiers = tuple(_identifier(part) for part in prerelease.split(".")) if prerelease else ()
        return cls(int(major), int(minor), int(patch), identifiers, build or "")

    @property
    def core(self) -> tuple[int, int, int]:
        return self.major, self.minor, self.patch

    def __lt__(self, other: Version) -> bool:
        return self._precedence < other._precedence

    def is_newer_than(self, other: Version) -> bool:
        """By precedence, and among equals by build metadata, since rebuilds of 1.2.3 are 1.2.3+0.1 and so on."""
        return (self._precedence, self._build) > (other._precedence, other._build)

    def __str__(self) -> str:
        prerelease = f"-{'.'.join(map(str, self.prerelease))}" if self.prerelease else ""
        build = f"+{self.build}" if self.build else ""
        return f"{self.major}.{self.minor}.{self.patch}{prerelease}{build}"

    @property
    def _precedence(self) -> tuple[int, int, int, bool, tuple[tuple[bool, int | str], ...]]:
        """A release comes after its pre-releases."""
        return (*self.core, not self.prerelease, _ordered(self.prerelease))

    @property
    def _build(self) -> tuple[tuple[bool, int | str], ...]:
        parts = self.build.split(".") if self.build else ()
        return _ordered(tuple(int(part) if _DIGITS.fullmatch(part) else part for part in parts))


@dataclass(frozen=True, slots=True)
class Unversioned:
    """A name without an unambiguous version."""

    name: str
    message: str


def version_of(csv: str) -> Version | Unversioned:
    """Read the version from a name such as cert-manager.v1.15.0: all that follows the first part that is a number."""
    beginning = _BEGINNING.search(csv)
    if not beginning or not beginning.start():
        return Unversioned(csv, f"{quoted(csv)} has no version")
    if beginning.group() == "." and csv[beginning.start() - 1].isdigit():  # foo-1.2.3.4 may mean 1.2.3.4
        return Unversioned(csv, f"{quoted(csv)} does not show where its version begins")
    try:
        return Version.parse(csv[beginning.end() :])
    except BadVersion as bad:
        return Unversioned(csv, str(bad))


def _ordered(identifiers: tuple[int | str, ...]) -> tuple[tuple[bool, int | str], ...]:
    """Numbers come before words."""
    return tuple((isinstance(part, str), part) for part in identifiers)


def _identifier(text: str) -> int | str:
    if not _DIGITS.fullmatch(text):
        return text
    if text[0] == "0" != text:
        raise BadVersion(f"{quoted(text)} is not part of a semantic version: numbers must not start with zero")
    return int(text)
