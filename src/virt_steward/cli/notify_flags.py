"""Flags for notifications."""

from __future__ import annotations

from typing import Annotated

import typer

from virt_steward.settings import names_in, notify_endpoints

NotifyOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="CONTROLLER=ENDPOINT[,...]",
        help="Notify this endpoint of what concerns people in autopilot or placement.",
    ),
]
NotificationsOption = Annotated[
    bool,
    typer.Option(
        "--notifications",
        help="Let controllers notify the endpoints in the Secret virt-steward-notify, key notify.yaml.",
    ),
]


def endpoints(notify: list[str] | None) -> dict[str, str]:
    """The endpoint by controller; the option can be given more than once, as with one Deployment for all."""
    return notify_endpoints([one for text in notify or () for one in names_in(text)])
