"""The path of each object that the console has a page for."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from virt_steward.apis.kubevirtconfig import KUBEVIRT_CONFIG
from virt_steward.apis.virtplatformconfig import VIRT_PLATFORM_CONFIG
from virt_steward.controllers.approver.olm import INSTALL_PLAN
from virt_steward.controllers.placement.observation import MACHINE

if TYPE_CHECKING:
    from virt_steward.insight.activity import Subject
    from virt_steward.insight.inbox import InboxItem
    from virt_steward.objects.identity import Key


def profile(name: str) -> str:
    return f"/profiles/{_part(name)}"


def plan(key: Key) -> str:
    return f"/approvals/{_part(key.namespace)}/{_part(key.name)}"


def machine(key: Key) -> str:
    return f"/placement/machines/{_part(key.namespace)}/{_part(key.name)}"


def cluster(name: str) -> str:
    return f"/placement/clusters/{_part(name)}"


def asset(name: str) -> str:
    return f"/autopilot/{_part(name)}"


def pool(name: str) -> str:
    return f"/pools/{_part(name)}"


def page_of_inbox_item(item: InboxItem) -> str:
    """The name of the page that lists it, as in the navigation."""
    return of_inbox_item(item).split("/")[1]


def of_inbox_item(item: InboxItem) -> str:
    key = item.ref.key
    match item.ref.kind:
        case _ if item.asset:
            return asset(item.asset)
        case kind if kind == VIRT_PLATFORM_CONFIG:
            return profile(key.name)
        case kind if kind == INSTALL_PLAN:
            return plan(key)
        case kind if kind == MACHINE:
            return machine(key)
        case kind if kind == KUBEVIRT_CONFIG:
            return cluster(key.name)
    raise AssertionError(item.ref)


def of_subject(subject: Subject) -> str:
    """Empty where the console has no page for it."""
    kind = subject.group, subject.kind
    if kind == (VIRT_PLATFORM_CONFIG.group, VIRT_PLATFORM_CONFIG.name):
        return profile(subject.name)
    if kind == (INSTALL_PLAN.group, INSTALL_PLAN.name):
        return f"/approvals/{_part(subject.namespace)}/{_part(subject.name)}"
    if kind == (MACHINE.group, MACHINE.name):
        return f"/placement/machines/{_part(subject.namespace)}/{_part(subject.name)}"
    return ""


def _part(name: str) -> str:
    return quote(name, safe="")
