"""The messages on a cluster that answers with an error, or cannot be asked."""

import pytest

from tests.fleet import a_spec
from virt_steward.controllers.placement.messages import describe_error, secret_of, without_kubeconfig
from virt_steward.controllers.placement.observation import UnusableCluster
from virt_steward.controllers.placement.secrets import SecretUnknown
from virt_steward.controllers.placement.verdicts import PlacementReason
from virt_steward.kube.errors import error_from
from virt_steward.objects.identity import Key

WRONG_ADDRESS = "check that its kubeconfig has the address of an API server"


@pytest.mark.parametrize(
    ("code", "message"),
    [
        pytest.param(302, f"request refused (HTTP 302): {WRONG_ADDRESS}", id="redirect"),
        pytest.param(404, f"request refused (HTTP 404): {WRONG_ADDRESS}", id="not-found"),
        pytest.param(
            403,
            "forbidden (403) to list virtualmachines.kubevirt.io; grant its kubeconfig user that right",
            id="forbidden",
        ),
        pytest.param(429, "unreachable: too many requests (429)", id="too-many-requests"),
        pytest.param(503, "unreachable: its API server fails; see the logs of that server", id="unavailable"),
    ],
)
def test_describe_error_never_repeats_the_server(code: int, message: str) -> None:
    assert describe_error(error_from(code, b"a token", what="list")) == message


@pytest.mark.parametrize(
    ("namespace", "name", "problem"),
    [
        pytest.param(
            "home", "a=b", "a Secret that cannot exist (a=b): correct spec.kubeconfigSecretRef", id="selector"
        ),
        pytest.param("home", "East", "a Secret that cannot exist (East): correct spec.kubeconfigSecretRef", id="upper"),
        pytest.param("home", "a\n", "a Secret that cannot exist (a): correct spec.kubeconfigSecretRef", id="newline"),
        pytest.param("a/b", "east", "a namespace that cannot exist (a/b): correct spec.secretNamespace", id="path"),
    ],
)
def test_secret_that_cannot_exist_is_not_looked_for(namespace: str, name: str, problem: str) -> None:
    spec = a_spec(namespace, name)
    assert secret_of(spec) is None
    message = f"KubevirtConfig bad names {problem}"
    assert without_kubeconfig("bad", spec, SecretUnknown()) == UnusableCluster(
        PlacementReason.CONFIG_INCOMPLETE, message
    )


@pytest.mark.parametrize("name", ["east", "east.kubeconfig", "0", "a-b.c-d"])
def test_secret_that_can_exist_is_looked_for(name: str) -> None:
    assert secret_of(a_spec("home", name)) == Key("home", name)
