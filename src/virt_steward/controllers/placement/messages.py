"""What is said of clusters that cannot be asked, or do not answer. Pure functions, no secrets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from virt_steward.controllers.placement.observation import UnusableCluster
from virt_steward.controllers.placement.secrets import SecretAbsent, SecretKeyMissing, SecretUnknown, SecretUnreadable
from virt_steward.controllers.placement.verdicts import PlacementReason
from virt_steward.kube.errors import Forbidden, KubeError, Refused, TimedOut, TooManyRequests, Unreachable
from virt_steward.objects.identity import Key

if TYPE_CHECKING:
    from virt_steward.apis.kubevirtconfig import KubevirtConfigSpec


def secret_of(spec: KubevirtConfigSpec | None) -> Key | None:
    """The Secret that a config names; None if it names none in full."""
    if spec is None or not spec.secret_namespace or not spec.kubeconfig_secret_ref:
        return None
    return Key(spec.secret_namespace, spec.kubeconfig_secret_ref)


def owner(config: str, spec: KubevirtConfigSpec) -> str:
    return f"Secret {secret_of(spec)} of KubevirtConfig {config}"


def missing(
    config: str, spec: KubevirtConfigSpec, content: SecretUnknown | SecretAbsent | SecretKeyMissing | SecretUnreadable
) -> UnusableCluster:
    """Why there is no kubeconfig."""
    if not spec.kubeconfig_secret_ref:
        because = f"KubevirtConfig {config} names no Secret: set spec.kubeconfigSecretRef"
        return UnusableCluster(PlacementReason.CONFIG_INCOMPLETE, because)
    if not spec.secret_namespace:
        because = f"KubevirtConfig {config} does not say where its Secret is: set spec.secretNamespace"
        return UnusableCluster(PlacementReason.CONFIG_INCOMPLETE, because)
    secret = owner(config, spec)
    match content:
        case SecretUnknown():
            return UnusableCluster(PlacementReason.SECRET_UNREADABLE, f"{secret} has not been read yet")
        case SecretAbsent():
            return UnusableCluster(PlacementReason.SECRET_NOT_FOUND, f"{secret} does not exist: create it")
        case SecretKeyMissing():
            return UnusableCluster(
                PlacementReason.SECRET_KEY_MISSING, f"{secret} has nothing under the key kubeconfig: put one there"
            )
        case SecretUnreadable(because):
            return UnusableCluster(PlacementReason.SECRET_UNREADABLE, f"{secret} cannot be read: {because}")


def in_words(error: KubeError) -> str:
    """What a cluster did, never in the words of its server: they may repeat our token."""
    match error:
        case Forbidden():
            return "does not let us look: allow the user of its kubeconfig to list virtualmachines.kubevirt.io"
        case Refused(code=code):
            return f"refuses the question (HTTP {code}): see if its kubeconfig has the address of an API server"
        case TooManyRequests():
            return "is too busy to answer (HTTP 429)"
        case Unreachable() | TimedOut():
            # Without the question, so that a cluster that is down has one sentence for all of them.
            return f"cannot be asked: {str(error).partition(': ')[2] or error}"
        case _:
            return "fails to answer: see its own logs"
