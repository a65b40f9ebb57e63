"""What says which object it is, and what the server sets: no override reaches it."""

from __future__ import annotations

from virt_steward.objects.paths import Pointer

PROTECTED = (
    *(Pointer((name,)) for name in ("apiVersion", "kind", "status")),
    *(
        Pointer(("metadata", name))
        for name in (
            "creationTimestamp",
            "deletionTimestamp",
            "generateName",
            "generation",
            "managedFields",
            "name",
            "namespace",
            "resourceVersion",
            "selfLink",
            "uid",
        )
    ),
)
