"""The messages on a cluster that answers with an error."""

import pytest

from virt_steward.controllers.placement.messages import describe_error
from virt_steward.kube.errors import error_from

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
