import copy
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kube.certificates import a_pair, an_authority
from tests.kube.kubeconfigs import SECRET, a_kubeconfig, b64
from virt_steward.kube.errors import BadConfig
from virt_steward.kube.kubeconfig import ClusterConfig, load_from_bytes

PAIR = a_pair()
CLUSTER = {
    "certificate-authority-data": b64(an_authority().chain),
    "certificate-authority": "/nowhere/ca",
    "insecure-skip-tls-verify": False,
    "tls-server-name": "kubernetes",
    "proxy-url": "http://proxy:3128",
    "extensions": [{"name": "client.authentication.k8s.io/exec", "extension": {"audience": "here"}}],
}
WITH_TOKEN = {
    "token": SECRET,
    "client-certificate-data": b64(PAIR.chain),
    "client-key-data": b64(PAIR.key),
    "as": "jane",
    "as-groups": ["ops"],
    "as-user-extra": {"scope": ["all"]},
}
WITH_PLUGIN = {
    "exec": {
        "command": "login",
        "apiVersion": "client.authentication.k8s.io/v1",
        "args": ["--now"],
        "env": [{"name": "REGION", "value": "east"}],
        "interactiveMode": "Never",
        "provideClusterInfo": True,
        "installHint": "install login",
    }
}
FULL = [a_kubeconfig(user=user, cluster=CLUSTER) for user in (WITH_TOKEN, WITH_PLUGIN)]

anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.binary()
    | st.dates()
    | st.sampled_from(["", "here", "https://[", "socks5://x", "a\0b", "é", b64("x")]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text() | st.integers(), inner, max_size=3),
    max_leaves=8,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    match value:
        case dict():
            for key, inner in value.items():
                yield from places(inner, (*path, key))
        case list():
            for index, inner in enumerate(value):
                yield from places(inner, (*path, index))


def replaced(value: Any, path: tuple[Any, ...], other: object) -> Any:
    if not path:
        return other
    changed = copy.copy(value)
    changed[path[0]] = replaced(value[path[0]], path[1:], other)
    return changed


def outcome(text: bytes, *, trusted: bool = True) -> ClusterConfig | str:
    try:
        return load_from_bytes(text, source="config", trusted=trusted, env={})
    except BadConfig as refused:
        return str(refused)


def check(result: ClusterConfig | str) -> None:
    assert SECRET not in repr(result)
    if isinstance(result, str):
        assert result.isprintable()
    else:
        assert result.server.startswith("http")


@pytest.mark.parametrize("config", [pytest.param(FULL[0], id="a token"), pytest.param(FULL[1], id="a plugin")])
def test_load_accepts_full_kubeconfig(config: dict[str, Any]) -> None:
    assert isinstance(outcome(yaml.safe_dump(config).encode()), ClusterConfig)


@settings(max_examples=200, deadline=None, database=None)
@given(st.data())
def test_load_handles_any_value(data: st.DataObject) -> None:
    config = data.draw(st.sampled_from(FULL))
    place = data.draw(st.sampled_from(list(places(config))))
    text = yaml.safe_dump(replaced(config, place, data.draw(anything))).encode()
    check(outcome(text))


@settings(max_examples=200, deadline=None, database=None)
@given(st.binary() | st.text(alphabet="{}[]:,-&*!|>'\"#%@ \nab", max_size=60).map(str.encode), st.booleans())
def test_load_handles_any_text(text: bytes, trusted: bool) -> None:
    result = outcome(text, trusted=trusted)
    assert isinstance(result, str)
    check(result)


def test_load_handles_recursive_value() -> None:
    text = yaml.safe_dump(FULL[1]).replace("extension:\n        audience: here", "extension: &self [*self]")
    assert "*self" in text
    assert outcome(text.encode()) == (
        "cluster here in config: extension client.authentication.k8s.io/exec is not valid JSON: correct it"
    )


def test_kubeconfig_of_a_secret_is_limited_in_length() -> None:
    long = yaml.safe_dump(a_kubeconfig(preferences={"list": ["a"] * 2000})).encode()
    with pytest.raises(BadConfig, match="has more than 2000 values: reduce it to the cluster and its user"):
        load_from_bytes(long, source="Secret a/b", trusted=False, env={})
    assert load_from_bytes(long, source="a file", trusted=True, env={}).context == "home"
