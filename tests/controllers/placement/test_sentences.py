"""What is said of a cluster that answers with an error."""

import pytest

from virt_steward.controllers.placement.messages import in_words
from virt_steward.kube.errors import error_from

WRONG_PLACE = "see if its kubeconfig has the address of an API server"


@pytest.mark.parametrize(
    ("code", "words"),
    [
        pytest.param(302, f"refuses the question (HTTP 302): {WRONG_PLACE}", id="sends-us-elsewhere"),
        pytest.param(404, f"refuses the question (HTTP 404): {WRONG_PLACE}", id="has-no-api"),
        pytest.param(
            403,
            "does not let us look: allow the user of its kubeconfig to list virtualmachines.kubevirt.io",
            id="forbids-it",
        ),
        pytest.param(429, "is too busy to answer (HTTP 429)", id="asks-for-patience"),
        pytest.param(503, "fails to answer: see its own logs", id="fails"),
    ],
)
def test_in_our_own_words_a_server(code: int, words: str) -> None:
    assert in_words(error_from(code, b"a token", what="list")) == words
