"""One-time links: whoever can read the terminal may sign in once by each, as the owner of its kubeconfig."""

from __future__ import annotations

import hmac
import secrets
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from virt_steward.kube.kubeconfig import ClusterConfig

PATH = "/sign-in/link"


class Link:
    """There is one at a time; when it is used, the next one is told."""

    def __init__(self, owner: ClusterConfig, tell: Callable[[str], None]) -> None:
        self._owner = owner
        self._tell = tell
        self._code = ""
        self._origin = ""

    def offer(self, origin: str) -> None:
        """Tell the first one."""
        self._origin = origin
        self._renew()

    def take(self, code: str) -> ClusterConfig | None:
        """Whose credentials it stands for; None if it is not the one that was told last."""
        if not self._code or not hmac.compare_digest(self._code.encode(), code.encode()):
            return None
        self._renew()
        return self._owner

    def _renew(self) -> None:
        self._code = secrets.token_urlsafe(32)
        self._tell(f"{self._origin}{PATH}?code={self._code}")
