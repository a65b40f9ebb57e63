"""Flags of the Go operators for `run`: those that mean nothing here are dropped, with a hint."""

from __future__ import annotations

from typing import TYPE_CHECKING

from virt_steward.objects.gosyntax import FLAG, TRUE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NO_WEBHOOKS = "there are no webhooks"
LOGS = "use --log-level and --log-format"

WITHOUT_VALUE: Mapping[str, str] = {
    "enable-http2": "it has no effect",
    "development": LOGS,
    "zap-devel": LOGS,
}
"""Boolean flags: a value follows only after `=`."""
WITH_VALUE: Mapping[str, str] = {
    "webhook-cert-path": NO_WEBHOOKS,
    "webhook-cert-name": NO_WEBHOOKS,
    "webhook-cert-key": NO_WEBHOOKS,
    "crd-validation-timeout": "CRDs may be installed and removed at any time",
    "zap-encoder": LOGS,
    "zap-log-level": LOGS,
    "zap-stacktrace-level": LOGS,
    "zap-time-encoding": LOGS,
}
SWITCHES = ("leader-elect", "metrics-secure")
"""Flags of both that Go also takes with a value."""
DEBUG_SERVER = "enable-debug-server"


def translated(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """The arguments of `run` without flags of the Go operators, and a hint for each of those."""
    kept: list[str] = []
    hints: list[str] = []
    following = iter(arguments)
    for argument in following:
        found = FLAG.fullmatch(argument)
        name, value = (found[1], found[2]) if found else ("", None)
        if name in WITHOUT_VALUE or name in WITH_VALUE:
            if name in WITH_VALUE and value is None:
                next(following, None)
            hints.append(f"--{name} is ignored: {WITHOUT_VALUE.get(name) or WITH_VALUE[name]}")
        elif name == DEBUG_SERVER:
            if value is not None and value not in TRUE:
                kept.append("--debug-bind-address=0")
            hints.append(f"--{name} is understood; --debug-bind-address=0 turns the debug pages off")
        elif name in SWITCHES:
            kept.append(f"--{name}" if value is None or value in TRUE else f"--no-{name}")
        else:
            kept.append(argument)
    return kept, hints
