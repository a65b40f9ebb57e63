"""Numbers of things, in words."""


def count_of(count: int, word: str) -> str:
    """`1 machine`, `2,000 machines`."""
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"
