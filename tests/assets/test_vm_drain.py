"""The script that shuts guests down before their node goes down, with stand-ins for the programs of a host."""

import importlib.util
import json
import time
from pathlib import Path
from types import ModuleType

import pytest

from tests.assets.hosts import SCRIPTS, FakeHost

DRAIN = "kubevirt-vm-drain.py"
BANNER = "Monitoring bus message stream."
CRICTL = """
case "$1" in
pods) echo pod-a; echo pod-b ;;
ps)
    test -e "$root/answer" && exec cat "$root/answer"
    printf '{"containers": ['
    for name in $(cat "$root/running"); do
        test -e "$root/down-$name" || printf '{"id": "%s", "podSandboxId": "pod-%s"}, ' "$name" "$name"
    done
    echo '{"id": "stranger", "podSandboxId": "pod-c"}]}' ;;
exec)
    case "$5" in
    list) echo "guest-in-$2"; echo ;;
    shutdown) touch "$root/down-$2" ;;
    esac ;;
esac
"""


def signal(*, going_down: bool) -> str:
    payload = {"type": "b", "data": [going_down]}
    return json.dumps({"type": "signal", "member": "PrepareForShutdown", "payload": payload})


def with_bus(host: FakeHost, *lines: str, preparing: str = "false") -> None:
    """A bus on which this is heard, and then nothing until somebody ends it."""
    host.write("heard", "".join(f"{line}\n" for line in lines))
    host.has_program(
        "busctl", f'case "$*" in *get-property*) echo "b {preparing}"; exit ;; esac; cat "$root/heard"; exec sleep 50'
    )


@pytest.fixture
def host(tmp_path: Path) -> FakeHost:
    """Two guests, and a container of the same name in a pod that is no virt-launcher."""
    host = FakeHost(tmp_path)
    host.write("running", "a b")
    host.has_program("crictl", CRICTL)
    return host


@pytest.fixture
def drain() -> ModuleType:
    found = importlib.util.spec_from_file_location("vm_drain", SCRIPTS[DRAIN])
    assert found
    assert found.loader
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def asked_to_end(host: FakeHost) -> set[str]:
    return {path.name for path in host.root.glob("down-*")}


def test_guests_are_shut_down_when_the_node_goes_down(host: FakeHost) -> None:
    with_bus(host, BANNER, signal(going_down=False), signal(going_down=True))
    done = host.run(DRAIN)
    assert done.returncode == 0, done.stderr
    assert asked_to_end(host) == {"down-a", "down-b"}
    assert "2 of 2 guests have shut down" in done.stderr


def test_a_shutdown_that_began_before_the_bus_was_followed_is_noticed(host: FakeHost) -> None:
    with_bus(host, BANNER, preparing="true")
    done = host.run(DRAIN)
    assert done.returncode == 0, done.stderr
    assert asked_to_end(host) == {"down-a", "down-b"}


def test_a_bus_that_ends_fails_the_unit_and_touches_no_guest(host: FakeHost) -> None:
    host.has_program("busctl", f"case \"$*\" in *get-property*) echo b false ;; *) echo '{BANNER}' ;; esac")
    done = host.run(DRAIN)
    assert done.returncode == 1
    assert not asked_to_end(host)


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(signal(going_down=False), id="a-shutdown-that-was-called-off"),
        pytest.param('{"member": "PrepareForSleep", "payload": {"data": [true]}}', id="another-signal"),
        pytest.param('{"member": "PrepareForShutdown"}', id="a-signal-without-contents"),
        pytest.param("[]", id="no-message"),
        pytest.param("{", id="half-a-message"),
    ],
)
def test_no_shutdown_is_announced_by(drain: ModuleType, line: str) -> None:
    assert not drain.announces_shutdown(line)


def test_a_guest_that_does_not_end_holds_the_node_up_no_longer_than_agreed(host: FakeHost, drain: ModuleType) -> None:
    begun = time.monotonic()
    left = drain.launchers_left(drain.Host(host.root), frozenset(("a", "b")), deadline=begun + 0.5)
    assert left == {"a", "b"}
    assert time.monotonic() - begun < 10


def test_a_list_that_cannot_be_had_is_no_sign_that_guests_have_ended(host: FakeHost, drain: ModuleType) -> None:
    host.has_program("crictl", "echo no runtime >&2; exit 1")
    left = drain.launchers_left(drain.Host(host.root), frozenset(("a",)), deadline=time.monotonic() + 0.5)
    assert left == {"a"}


@pytest.mark.parametrize("answer", ["no JSON", "{}", '{"containers": [{}]}'])
def test_containers_are_unknown_if_the_runtime_answers(host: FakeHost, drain: ModuleType, answer: str) -> None:
    host.write("answer", answer)
    assert drain.launchers_on(drain.Host(host.root)) is None


def test_an_empty_node_goes_down_at_once(host: FakeHost) -> None:
    with_bus(host, BANNER, signal(going_down=True))
    host.write("running", "")
    done = host.run(DRAIN)
    assert done.returncode == 0
    assert not asked_to_end(host)
