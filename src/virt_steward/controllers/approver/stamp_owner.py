"""Who wrote the annotations of an InstallPlan, by its managedFields."""

from __future__ import annotations

import msgspec

from virt_steward.ssa import managers

NO_FIELDS = msgspec.Raw(b"[]")


def is_our_stamp(annotations: msgspec.Struct, managed_fields: msgspec.Raw) -> bool:
    """Whether the approver, or an approval by console or command, wrote all of these annotations and nobody since.

    Anybody who may write the plan can write annotations. Managers can be claimed, too: the admission policy prevents
    that (`admission.py`). managedFields are decoded only where there is a stamp to prove.
    """
    present = {name for name, text in msgspec.to_builtins(annotations).items() if text}
    if not present:
        return True
    entries = _MANAGED_FIELDS.decode(managed_fields)
    ours = (_OWNED.decode(entry.fields) for entry in entries if entry.manager == managers.APPROVAL.name)
    return present <= {name.removeprefix("f:") for owned in ours for name in owned.metadata.annotations}


class _OwnedMeta(msgspec.Struct):
    annotations: dict[str, msgspec.Raw] = msgspec.field(default_factory=dict, name="f:annotations")


class _OwnedObject(msgspec.Struct):
    metadata: _OwnedMeta = msgspec.field(default_factory=_OwnedMeta, name="f:metadata")


class _OwnedFields(msgspec.Struct):
    """An entry of managedFields: what a field manager wrote last."""

    manager: str = ""
    fields: msgspec.Raw = msgspec.field(default=msgspec.Raw(b"{}"), name="fieldsV1")


_OWNED: msgspec.json.Decoder[_OwnedObject] = msgspec.json.Decoder(_OwnedObject)
_MANAGED_FIELDS: msgspec.json.Decoder[list[_OwnedFields]] = msgspec.json.Decoder(list[_OwnedFields])
