"""Flags of `manifests` for how pods are run."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from virt_steward.packaging.operation import EGRESS_PORTS, IMAGE_PATTERN, OperationOptions
from virt_steward.runtime.addresses import HIGHEST_PORT, parse_port
from virt_steward.settings import BadSetting

PORTS = ",".join(map(str, EGRESS_PORTS))

ImageOption = Annotated[
    str, typer.Option(metavar="IMAGE", help="Container image of the controllers, by tag or digest (NAME@sha256:...).")
]
AllInOneOption = Annotated[
    bool,
    typer.Option("--all-in-one", help="One Deployment with all controllers, and one account with the rights of all."),
]
PriorityOption = Annotated[
    str, typer.Option(metavar="NAME", help="PriorityClass of the pods; empty: that of the cluster.")
]
NetworkOption = Annotated[bool, typer.Option(help="Include NetworkPolicies.")]
PortsOption = Annotated[
    str,
    typer.Option(
        metavar="PORT[,PORT]",
        help="TCP ports that pods may connect to: API servers, members, notifications, Prometheus. Empty: all.",
    ),
]


def operation_options(
    priority_class: str, egress_ports: str, *, all_in_one: bool, network_policies: bool
) -> OperationOptions:
    return OperationOptions(all_in_one, priority_class, network_policies, _ports(egress_ports))


def checked_image(image: str) -> str:
    if not re.match(IMAGE_PATTERN, image):
        raise BadSetting(f"--image {image!r} must be NAME:TAG or NAME@sha256: and 64 hexadecimal digits")
    return image


def _ports(text: str) -> tuple[int, ...]:
    found = [parse_port(one.strip()) for one in text.split(",")] if text.strip() else []
    ports = tuple(one for one in found if one)
    if len(ports) < len(found):
        raise BadSetting(f"--egress-ports {text!r} must be numbers from 1 to {HIGHEST_PORT}, with commas between them")
    return ports
