r"""Shell patterns for names: `*`, `?`, `[a-z]`, `[^a-z]` and `\` to escape a character."""

from __future__ import annotations

from dataclasses import dataclass

_STAR = None


class BadGlob(ValueError):
    """The text is not a pattern."""

    def __init__(self, text: str, problem: str) -> None:
        super().__init__(f"{text!r} is not a valid pattern: {problem}")


@dataclass(frozen=True, slots=True)
class _OneOf:
    """One character within, or outside of, these ranges."""

    ranges: tuple[tuple[str, str], ...]
    negated: bool = False

    def fits(self, char: str) -> bool:
        return any(low <= char <= high for low, high in self.ranges) is not self.negated


_ANY = _OneOf((), negated=True)


@dataclass(frozen=True, slots=True)
class Glob:
    text: str
    parts: tuple[_OneOf | None, ...]
    """None stands for any number of characters."""

    @classmethod
    def parse(cls, text: str) -> Glob:
        return cls(text, tuple(_Reader(text).parts()))

    def matches(self, name: str) -> bool:
        """Go back to the last star only: of many stars each takes as little as it can, so no pattern takes long."""
        at = part = 0
        star, resume = -1, 0
        while at < len(name):
            wanted = self.parts[part] if part < len(self.parts) else _OneOf(())
            if wanted is _STAR:
                star, resume, part = part, at, part + 1
            elif wanted.fits(name[at]):
                at, part = at + 1, part + 1
            elif star >= 0:
                at, part, resume = resume + 1, star + 1, resume + 1
            else:
                return False
        return all(rest is _STAR for rest in self.parts[part:])


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def parts(self) -> list[_OneOf | None]:
        found: list[_OneOf | None] = []
        while self._at < len(self._text):
            match self._next():
                case "*":
                    found += [] if found and found[-1] is _STAR else [_STAR]
                case "?":
                    found.append(_ANY)
                case "[":
                    found.append(self._class())
                case char:
                    char = self._literal(char)
                    found.append(_OneOf(((char, char),)))
        return found

    def _next(self) -> str:
        if self._at == len(self._text):
            raise BadGlob(self._text, "it ends too early")
        self._at += 1
        return self._text[self._at - 1]

    def _literal(self, char: str) -> str:
        return self._next() if char == "\\" else char

    def _class(self) -> _OneOf:
        negated = self._text[self._at : self._at + 1] == "^"
        self._at += negated
        ranges: list[tuple[str, str]] = []
        while (char := self._next()) != "]":
            low = high = self._end_of_range(char)
            if self._text[self._at : self._at + 1] == "-":
                self._at += 1
                high = self._end_of_range(self._next())
            ranges.append((low, high))
        if not ranges:
            raise BadGlob(self._text, "nothing is between [ and ]")
        return _OneOf(tuple(ranges), negated)

    def _end_of_range(self, char: str) -> str:
        if char in "-]":
            raise BadGlob(self._text, f"{char!r} must be written as '\\{char}' between [ and ]")
        return self._literal(char)
