"""Whether the API server enforces one of our admission policies, which OLM, for one, does not install."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from virt_steward.kube.errors import Forbidden, NotFound
from virt_steward.objects.identity import Key, Kind, Ref
from virt_steward.objects.meta import Existing
from virt_steward.runtime.access import READ, Grant

if TYPE_CHECKING:
    from virt_steward.kube.client import Reader

GROUP = "admissionregistration.k8s.io"
ADMISSION_POLICY = Kind(GROUP, "ValidatingAdmissionPolicy", "validatingadmissionpolicies")
ADMISSION_BINDING = Kind(GROUP, "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings")


class _BindingSpec(msgspec.Struct, rename="camel"):
    policy_name: str = ""
    validation_actions: tuple[str, ...] = ()


class _Binding(msgspec.Struct):
    spec: _BindingSpec


def grants_to_check(name: str) -> tuple[Grant, ...]:
    """The rights that `is_enforced` needs for this policy."""
    why = "to know whether approvals are held to the names of those who give them"
    return tuple(Grant(kind, READ, why, names=(name,)) for kind in (ADMISSION_POLICY, ADMISSION_BINDING))


async def is_enforced(reader: Reader, name: str) -> bool:
    """Whether the policy exists, and its binding of the same name denies what it forbids. Unreadable means no."""
    key = Key("", name)
    try:
        binding = await reader.get(Ref(ADMISSION_BINDING, key), _Binding)
        await reader.get(Ref(ADMISSION_POLICY, key), Existing)
    except (NotFound, Forbidden):
        return False
    return binding.spec.policy_name == name and "Deny" in binding.spec.validation_actions
