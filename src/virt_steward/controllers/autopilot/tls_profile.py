"""Has what this process serves over TLS follow the TLS profile of the platform, on every replica."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import structlog

from virt_steward.catalog.filters import dig
from virt_steward.objects.paths import Pointer
from virt_steward.platform.hco import Hco
from virt_steward.platform.tls_profile import API_SERVER, API_SERVER_PATH, HYPERCONVERGED_PATH, resolve_profile

if TYPE_CHECKING:
    from virt_steward.controllers.autopilot.observe import AutopilotStores
    from virt_steward.controllers.autopilot.watches import Watchlist
    from virt_steward.platform.tls_profile import TlsProfile
    from virt_steward.runtime.controller import Toolbox

log = structlog.get_logger()


def follow_tls_profile(tools: Toolbox, watchlist: Watchlist, stores: AutopilotStores) -> None:
    """Resolve the profile again whenever one of the two objects changes."""
    in_force: TlsProfile | None = None

    def handle(*_: Any) -> None:
        nonlocal in_force
        profile = observe_tls_profile(stores)
        if profile == in_force:
            return
        in_force = profile
        if profile.warning:
            log.warning("TLS profile not fully usable", message=profile.warning)
        log.info("TLS profile", profile=profile.name, source=profile.source, min_version=profile.min_version)
        tools.use_tls(profile.parameters)

    tools.informers.of(watchlist.hco).tell(handle)
    if source := watchlist.objects.get(API_SERVER):
        tools.informers.of(source).tell(handle)


def observe_tls_profile(stores: AutopilotStores) -> TlsProfile:
    """The profile in force, by what is known of the two objects."""
    hco = next((Hco.of(one.content) for one in stores.hco), None)
    server = next((one.content for one in stores.objects.get(API_SERVER, ())), None)
    of_hco = hco.value(Pointer.parse(HYPERCONVERGED_PATH)) if hco else None
    return resolve_profile(of_hco, dig(server or {}, API_SERVER_PATH))
