"""The record on an object that we created it: an annotation with its uid, which a copy of the object does not have.

The field manager does not tell that: another implementation of the autopilot applies as the same one. The uid is known
only after the creation, so the request that creates an object says that it is to come. The record is completed at once,
or by the next process if this one ends in between: the object never counts as another instance's.

Version 0.1 recorded the uid alone. Its objects count as ours when it comes to deleting them, and as those of another
instance when it comes to changing them: an upgrade writes nothing before somebody has reviewed it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from virt_steward.catalog.load import MANAGED_BY, MANAGER
from virt_steward.controllers.autopilot.annotation_keys import (
    CREATED,
    CREATED_BY,
    SIGNER,
    UID_PENDING,
    annotation_intent,
)
from virt_steward.controllers.autopilot.optout import NEVER_DELETED
from virt_steward.kube.client import ApplyResult
from virt_steward.kube.errors import KubeError, NotLeading
from virt_steward.kube.faults import reach
from virt_steward.objects.identity import kind_of, ref_of
from virt_steward.ssa import apply as writing
from virt_steward.ssa.locks import lock_on
from virt_steward.ssa.managers import CREATION

if TYPE_CHECKING:
    from virt_steward.controllers.autopilot.live_summary import LiveSummary
    from virt_steward.kube.client import Client
    from virt_steward.objects.identity import Ref
    from virt_steward.ssa.locks import Object

log = structlog.get_logger()


def prepare_signature(intent: Object) -> Object:
    """Return the intent that creates the object. Kinds that are never deleted need no signature."""
    if kind_of(intent) in NEVER_DELETED:
        return intent
    metadata = intent["metadata"]
    annotations = {**(metadata.get("annotations") or {}), CREATED: UID_PENDING}
    return {**intent, "metadata": {**metadata, "annotations": annotations}}


def is_signature_pending(live: Object) -> bool:
    return (live["metadata"].get("annotations") or {}).get(CREATED) == UID_PENDING


async def sign(client: Client, live: Object) -> bool:
    """Complete a pending signature; false if the object has just changed and has to be read again.

    The apply is forced: it takes the annotation from the field manager that has created the object.
    """
    if not is_signature_pending(live):
        return True
    reach("autopilot.sign.before")
    try:
        intent = annotation_intent(live, {CREATED: live["metadata"]["uid"], CREATED_BY: SIGNER})
        answer = await writing.apply(client, intent, CREATION, lock_on(live))
    except NotLeading:
        raise
    except KubeError as error:  # the object itself is in sync, and matters more
        log.warning("creation not recorded", object=str(ref_of(live)), error=str(error))
        return True
    return isinstance(answer, ApplyResult)


def is_of_another_instance(ref: Ref, live: LiveSummary) -> bool:
    """Whether another instance of the autopilot, or version 0.1, created the object.

    Of kinds that are never signed, nobody knows.
    """
    is_managed = live.labels.get(MANAGED_BY) == MANAGER and not live.others
    return is_managed and not live.is_signed and ref.kind not in NEVER_DELETED
