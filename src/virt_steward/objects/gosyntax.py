"""How Go programs write flags and booleans, for what users carry over from the Go operators."""

from __future__ import annotations

import re

FLAG = re.compile(r"--?([a-z][-a-z0-9]*)(?:=(.*))?", re.DOTALL)
"""The name of a flag, and its value if one follows after `=`."""
TRUE = frozenset(("1", "t", "T", "true", "True", "TRUE"))
