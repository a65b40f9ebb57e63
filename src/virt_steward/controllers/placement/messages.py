"""Messages on clusters that cannot be asked, or do not answer. Pure functions, no secrets."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from virt_steward.apis.kubevirtconfig import SECRET_NAME
from virt_steward.apis.meta import NAMESPACE_NAME
from virt_steward.controllers.placement.candidates import quoted
from virt_steward.controllers.placement.observation import SecretNotReadYet, UnusableCluster
from virt_steward.controllers.placement.secrets import SecretAbsent, SecretKeyMissing, SecretUnknown, SecretUnreadable
from virt_steward.controllers.placement.verdicts import PlacementReason
from virt_steward.kube.errors import (
    INVALID,
    Forbidden,
    InvalidAnswer,
    KubeError,
    Refused,
    ServerUnreachable,
    TimedOut,
    TooManyRequests,
)
from virt_steward.objects.identity import Key

if TYPE_CHECKING:
    from virt_steward.apis.kubevirtconfig import KubevirtConfigSpec

INVALID_ANSWER = "invalid answer: its kubeconfig may have an address that is no API server"
MISBEHAVIOUR_REMEDY = "check its API server, and what is in front of it"

_SECRET_NAME = re.compile(SECRET_NAME)
_NAMESPACE_NAME = re.compile(NAMESPACE_NAME)


def secret_of(spec: KubevirtConfigSpec | None) -> Key | None:
    """The Secret that a KubevirtConfig names; None if it does not name one in full, or no Secret can have that name."""
    if spec is None or spec.secret_namespace is None or _wrong_reference(spec):
        return None
    return Key(spec.secret_namespace, spec.kubeconfig_secret_ref)


def _wrong_reference(spec: KubevirtConfigSpec) -> str | None:
    """What is wrong with the reference to the Secret. The CRD that others install accepts any text."""
    if not spec.kubeconfig_secret_ref:
        return "names no Secret: set spec.kubeconfigSecretRef"
    if not spec.secret_namespace:
        return "does not name the namespace of its Secret: set spec.secretNamespace"
    if not _SECRET_NAME.fullmatch(spec.kubeconfig_secret_ref):
        return (
            f"names a Secret that cannot exist ({quoted(spec.kubeconfig_secret_ref)}): correct spec.kubeconfigSecretRef"
        )
    if not _NAMESPACE_NAME.fullmatch(spec.secret_namespace):
        return f"names a namespace that cannot exist ({quoted(spec.secret_namespace)}): correct spec.secretNamespace"
    return None


def describe_secret(config: str, spec: KubevirtConfigSpec) -> str:
    return f"Secret {secret_of(spec)} of KubevirtConfig {config}"


def without_kubeconfig(
    config: str, spec: KubevirtConfigSpec, content: SecretUnknown | SecretAbsent | SecretKeyMissing | SecretUnreadable
) -> UnusableCluster:
    """Why there is no kubeconfig."""
    if problem := _wrong_reference(spec):
        return UnusableCluster(PlacementReason.CONFIG_INCOMPLETE, f"KubevirtConfig {config} {problem}")
    secret = describe_secret(config, spec)
    match content:
        case SecretUnknown():
            return SecretNotReadYet(PlacementReason.SECRET_UNREADABLE, f"{secret} has not been read yet")
        case SecretAbsent():
            return UnusableCluster(PlacementReason.SECRET_NOT_FOUND, f"{secret} not found: create it")
        case SecretKeyMissing():
            return UnusableCluster(
                PlacementReason.SECRET_KEY_MISSING, f"{secret} has no key kubeconfig, or it is empty: add it"
            )
        case SecretUnreadable(message):
            return UnusableCluster(PlacementReason.SECRET_UNREADABLE, f"{secret} cannot be read: {message}")


def timed_out(seconds: float) -> str:
    return f"unreachable: timed out after {seconds:g} s"


def describe_error(error: KubeError) -> str:
    """What went wrong, without the words of the cluster's server: they may repeat our token."""
    match error:
        case Forbidden():
            return "forbidden (403) to list virtualmachines.kubevirt.io; grant its kubeconfig user that right"
        case Refused(code=code):
            return f"request refused (HTTP {code}): check that its kubeconfig has the address of an API server"
        case InvalidAnswer(problem=problem):
            return INVALID_ANSWER if problem == INVALID else f"misbehaves: {problem}; {MISBEHAVIOUR_REMEDY}"
        case TooManyRequests():
            return "unreachable: too many requests (429)"
        case ServerUnreachable() | TimedOut():
            # Without the path of the request, so that a cluster that is down has one message for all requests.
            return f"unreachable: {str(error).partition(': ')[2] or error}"
        case _:
            return "unreachable: its API server fails; see the logs of that server"
