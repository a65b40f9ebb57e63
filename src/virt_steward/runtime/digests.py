"""Digests: in a flood, one notification counts many. Pure: time comes in as an argument."""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import TYPE_CHECKING

from virt_steward.runtime.notifications import Notification

if TYPE_CHECKING:
    from datetime import datetime

WINDOW = 60.0
"""Seconds within which notifications are counted together."""
LISTED = 5
"""Notifications that a digest quotes."""
LONGEST_TEXT = 300
"""Characters of each of them."""
MOST_TYPES = 20
"""Kinds of notifications that a digest counts apart."""
TYPE, SOURCE = "virt-steward.digest", "/virt-steward"
OTHERS = "others"


class DigestWindow:
    """Sorts the notifications for one endpoint: into those that are sent one by one, and those that are counted."""

    def __init__(self, limit: int) -> None:
        """`limit` is how many of a window are sent one by one; 0: all."""
        self._limit = limit
        self._began = float("-inf")
        self._sent = 0
        self._first: list[Notification] = []
        self._types: Counter[str] = Counter()
        self._identity = hashlib.blake2b(digest_size=16)

    @property
    def counted(self) -> int:
        """How many the digest counts by now."""
        return self._types.total()

    def admits(self, notice: Notification, now: float) -> bool:
        """Whether it is sent by itself. If not, the digest counts it."""
        if not self.counted and now >= self._began + WINDOW:
            self._began, self._sent = now, 0
        if not self._limit or (self._sent < self._limit and not self.counted):
            self._sent += 1
            return True
        self._count(notice)
        return False

    def closes_in(self, now: float) -> float:
        """Seconds until the digest is due."""
        return max(self._began + WINDOW - now, 0.0)

    def take(self, utc: datetime) -> Notification | None:
        """The digest, if there is anything to count."""
        if not self.counted:
            return None
        kinds = ", ".join(f"{count} {name}" for name, count in self._types.most_common())
        quoted = "\n".join(f"- {one.text[:LONGEST_TEXT]}" for one in self._first)
        digest = Notification(
            id=self._identity.hexdigest(),
            type=TYPE,
            source=SOURCE,
            subject="",
            time=utc,
            text=f"{self.counted} more notifications within a minute: {kinds}. The first of them:\n{quoted}",
            data={
                "reason": "Digest",
                "count": self.counted,
                "types": dict(self._types),
                "first": [
                    {"id": one.id, "type": one.type, "subject": one.subject, "text": one.text[:LONGEST_TEXT]}
                    for one in self._first
                ],
            },
            page="/",
        )
        self._first, self._types, self._identity = [], Counter(), hashlib.blake2b(digest_size=16)
        return digest

    def _count(self, notice: Notification) -> None:
        known = notice.type in self._types or len(self._types) < MOST_TYPES
        self._types[notice.type if known else OTHERS] += 1
        self._identity.update(notice.id.encode())
        if len(self._first) < LISTED:
            self._first.append(notice)
