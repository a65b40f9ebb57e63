"""What people and systems outside of the cluster are notified of.

Each notification is a CloudEvent (https://cloudevents.io) that `notification` makes, for all controllers. `notifier`
sends it; `matters` decides about those of controllers whose objects have no `spec.notify`.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from datetime import datetime

    from virt_steward.objects.identity import Regarding

CORE_GROUP = "k8s.io"
"""Stands for the core API group, which has no name."""


@dataclass(frozen=True, slots=True)
class Notification:
    """The attributes of a CloudEvent, and a sentence for chats."""

    id: str
    """The same for the same occurrence, so that a receiver can drop duplicates."""
    type: str
    source: str
    subject: str
    time: datetime
    text: str
    """One sentence for people."""
    data: Mapping[str, Any]
    """The facts for programs."""
    page: str = ""
    """The path of the page of the console that shows it; empty: none does."""


def notification(  # noqa: PLR0913 - the attributes of a CloudEvent
    regarding: Regarding,
    what: str,
    text: str,
    *,
    episode: Sequence[str],
    time: datetime,
    data: Mapping[str, Any],
    subject: str = "",
    page: str = "",
) -> Notification:
    """The CloudEvent about an object.

    The object gives `source` (its path in the API) and the first part of `type` (its API group, reversed); `what` is
    the rest of the type. The same `episode` of the same object has the same `id`. For example, about the
    VirtPlatformConfig `density`, with `what="virtplatformconfig.failed"`:

        id:      3f0c…                                   a digest of uid and episode
        type:    io.kubevirt.advisor.virtplatformconfig.failed
        source:  /apis/advisor.kubevirt.io/v1alpha1/virtplatformconfigs/density
        subject: density
    """
    story = "\0".join((regarding.uid, *episode))
    group = ".".join(reversed((regarding.ref.kind.group or CORE_GROUP).split(".")))
    return Notification(
        id=hashlib.blake2b(story.encode(), digest_size=16).hexdigest(),
        type=f"{group}.{what}",
        source=_path(regarding),
        subject=subject or str(regarding.ref.key),
        time=time,
        text=text,
        data=data,
        page=page,
    )


def _path(regarding: Regarding) -> str:
    kind, key = regarding.ref.kind, regarding.ref.key
    root = "/apis" if kind.group else "/api"
    namespace = f"/namespaces/{key.namespace}" if key.namespace else ""
    return f"{root}/{regarding.api_version}{namespace}/{kind.plural or kind.name.lower()}/{key.name}"


class NotificationSender(Protocol):
    """What a controller uses of notifications."""

    @property
    def endpoints(self) -> Collection[str]:
        """The names that `send` takes."""

    def send(self, endpoint: str, notice: Notification) -> None:
        """Queue a notification for one of them and return at once."""

    async def delivered(self, endpoint: str) -> None:
        """Wait until nothing is queued for it: the receiver has taken or refused it."""
