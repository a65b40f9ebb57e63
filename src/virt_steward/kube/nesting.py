"""Objects nested deeper than our decoder goes: servers store them, so anyone who may write one can send us one."""

import re

DEEP = 100
"""Far beyond what any API defines, far below where the decoder gives up."""

_STRING_OR_BRACKET = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{}]')


def shallow(raw: bytes) -> bytes:
    """The same JSON, with null in place of all that is nested too deep: enough to tell whose it is."""
    kept: list[bytes] = []
    level, start = 0, 0
    for token in _STRING_OR_BRACKET.finditer(raw):
        match token[0]:
            case b"{" | b"[":
                level += 1
                if level == DEEP + 1:
                    kept += raw[start : token.start()], b"null"
            case b"}" | b"]":
                if level == DEEP + 1:
                    start = token.end()
                level -= 1
    return b"".join((*kept, raw[start:]))
