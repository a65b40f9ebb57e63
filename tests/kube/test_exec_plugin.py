import asyncio
import json
import os
import re
import signal
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.eventually import eventually, eventually_blocking
from tests.kube.certificates import a_pair, an_authority
from tests.kube.kubeconfigs import SECRET, a_kubeconfig, b64, written
from virt_steward.kube.credentials import Authentication, Credentials
from virt_steward.kube.errors import BadConfig, TimedOut, Unavailable
from virt_steward.kube.exec_plugin import EARLY, PAUSE, ExecCredentials, Plugin, run
from virt_steward.kube.kubeconfig import load_kubeconfig

V1, V1BETA1 = "client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"
NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
WAIT = 30


class Clock:
    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        return self.now


class Fake:
    """A plugin that counts its runs and prints `answer`, in which {n} is the number of the run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = Clock()

    def script(self, body: str) -> Path:
        path = self.folder / "login"
        path.write_text(f"#!/bin/sh\ncd {self.folder}\necho run >>runs\nn=$(wc -l <runs | tr -d ' ')\n{body}\n")
        path.chmod(0o700)
        return path

    def answering(self, answer: dict[str, Any]) -> Path:
        (self.folder / "answer").write_text(json.dumps(answer))
        return self.script('sed "s/{n}/$n/" answer')

    @property
    def runs(self) -> int:
        return len((self.folder / "runs").read_text().splitlines())

    def credentials(self, *, cluster: dict[str, Any] | None = None, **changes: Any) -> Credentials:
        spec = {"command": "./login", "apiVersion": V1, "interactiveMode": "Never", **changes}
        config = written(self.folder / "config", a_kubeconfig(user={"exec": spec}, cluster=cluster))
        return load_kubeconfig(config, env={"PATH": os.environ["PATH"]}, now=self.clock).credentials

    def line(self, problem: str) -> str:
        return re.escape(f"user admin in {self.folder}/config: {problem}")


@pytest.fixture
def fake(tmp_path: Path) -> Fake:
    return Fake(tmp_path)


def a_credential(version: str = V1, expires: datetime | None = None, **status: str) -> dict[str, Any]:
    status = status or {"token": SECRET + "{n}"}
    if expires:
        status["expirationTimestamp"] = expires.isoformat().replace("+00:00", "Z")
    return {"apiVersion": version, "kind": "ExecCredential", "status": status}


def token(authentication: Authentication) -> str:
    return authentication.headers[0][1].removeprefix(f"Bearer {SECRET}")


@pytest.mark.parametrize("version", [V1, V1BETA1])
async def test_exec_plugin_gives_token(version: str, fake: Fake) -> None:
    fake.answering(a_credential(version))
    assert token(await fake.credentials(apiVersion=version).current()) == "1"


async def test_exec_plugin_gives_certificate(fake: Fake) -> None:
    pair = a_pair()
    fake.answering(a_credential(clientCertificateData=pair.chain.decode(), clientKeyData=pair.key.decode()))
    shown = await fake.credentials().current()
    assert shown.headers == ()
    assert shown.client_certificate is not None
    assert (shown.client_certificate.chain, shown.client_certificate.key) == (pair.chain, pair.key)


async def test_exec_plugin_gets_arguments_and_environment(fake: Fake) -> None:
    fake.script('printf "%s|%s|%s" "$*" "$REGION" "$KUBERNETES_EXEC_INFO" >seen; exit 1')
    cluster = {
        "certificate-authority-data": b64(an_authority().chain),
        "extensions": [{"name": "client.authentication.k8s.io/exec", "extension": {"audience": "here"}}],
    }
    env = [{"name": "REGION", "value": "east"}]
    with pytest.raises(Unavailable):
        await fake.credentials(args=["a", "b c"], env=env, provideClusterInfo=True, cluster=cluster).current()
    args, region, question = (fake.folder / "seen").read_text().split("|")
    assert (args, region) == ("a b c", "east")
    assert json.loads(question) == {
        "apiVersion": V1,
        "kind": "ExecCredential",
        "spec": {
            "interactive": False,
            "cluster": {
                "server": "https://api.example:6443",
                "certificate-authority-data": b64(an_authority().chain),
                "config": {"audience": "here"},
            },
        },
    }


async def test_exec_plugin_gets_cluster_info_on_request(fake: Fake) -> None:
    fake.script('printf "%s" "$KUBERNETES_EXEC_INFO" >seen; exit 1')
    with pytest.raises(Unavailable):
        await fake.credentials().current()
    assert json.loads((fake.folder / "seen").read_text())["spec"] == {"interactive": False}


async def test_exec_plugin_runs_once_for_many_requests(fake: Fake) -> None:
    fake.answering(a_credential())
    credentials = fake.credentials()
    shown = await asyncio.gather(*(credentials.current() for _ in range(20)))
    assert {token(each) for each in shown} == {"1"}
    assert fake.runs == 1


async def test_exec_plugin_survives_cancelled_request(fake: Fake) -> None:
    fake.answering(a_credential())
    fake.script('until [ -e gate ]; do sleep 0.01; done; sed "s/{n}/$n/" answer')
    credentials = fake.credentials()
    impatient, patient = (asyncio.create_task(credentials.current()) for _ in range(2))
    await asyncio.sleep(0)
    impatient.cancel()
    (fake.folder / "gate").touch()
    async with asyncio.timeout(WAIT):
        assert token(await patient) == "1"
    assert impatient.cancelled()
    assert fake.runs == 1


async def test_exec_plugin_renews_expired_credential(fake: Fake) -> None:
    fake.answering(a_credential(expires=NOON + HOUR))
    credentials = fake.credentials()
    assert token(await credentials.current()) == "1"
    fake.clock.now = NOON + HOUR - EARLY - timedelta(seconds=1)
    assert token(await credentials.current()) == "1"
    assert fake.runs == 1
    fake.clock.now = NOON + HOUR
    assert token(await credentials.current()) == "2"


async def test_exec_plugin_uses_credential_during_renewal(fake: Fake) -> None:
    fake.answering(a_credential(expires=NOON + HOUR))
    credentials = fake.credentials()
    await credentials.current()
    fake.answering(a_credential(expires=NOON + 2 * HOUR))
    fake.clock.now = NOON + HOUR - EARLY
    assert token(await credentials.current()) == "1"
    async with asyncio.timeout(WAIT):
        while token(await credentials.current()) != "2":  # noqa: ASYNC110 - it is fetched behind our back
            await asyncio.sleep(0.01)
    assert fake.runs == 2


async def test_exec_plugin_keeps_credential_without_expiry(fake: Fake) -> None:
    fake.answering(a_credential())
    credentials = fake.credentials()
    await credentials.current()
    fake.clock.now = NOON + 10_000 * HOUR
    assert token(await credentials.current()) == "1"


async def test_exec_plugin_renews_rejected_credential_once(fake: Fake) -> None:
    fake.answering(a_credential())
    credentials = fake.credentials()
    used = await credentials.current()
    assert await asyncio.gather(*(credentials.rejected(used) for _ in range(5))) == [True] * 5
    assert await credentials.rejected(used)
    assert token(await credentials.current()) == "2"
    assert fake.runs == 2


async def test_rejected_is_false_for_same_exec_credential(fake: Fake) -> None:
    fake.answering(a_credential(token=SECRET))
    credentials = fake.credentials()
    assert not await credentials.rejected(await credentials.current())


async def test_exec_plugin_pauses_after_failure(fake: Fake) -> None:
    fake.script("echo first >&2; echo 'you are\tlogged out' >&2; exit 3")
    credentials = fake.credentials()
    for _ in range(3):
        with pytest.raises(Unavailable, match=r"login failed with exit code 3: you are logged out$"):
            await credentials.current()
    assert fake.runs == 1
    fake.answering(a_credential())
    fake.clock.now += PAUSE
    assert token(await credentials.current()) == "2"


async def test_exec_plugin_times_out(fake: Fake) -> None:
    plugin = a_plugin(fake.script("sleep 600"))
    with pytest.raises(TimedOut, match=r"^user admin: .*login timed out after 0.1 s: run it manually"):
        await ExecCredentials(plugin, fake.clock, patience=timedelta(seconds=0.1)).current()


async def test_exec_plugin_is_killed_with_its_children(fake: Fake) -> None:
    running = asyncio.create_task(run(a_plugin(fake.script("sleep 600 & echo $! >new; mv new child; wait")), HOUR))
    child = fake.folder / "child"
    assert await eventually(child.exists)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert await eventually(lambda: not is_running(int(child.read_text())))


@pytest.mark.parametrize("turns", range(2, 8))
async def test_exec_plugin_is_killed_while_it_starts(fake: Fake, turns: int) -> None:
    """It may have begun its work before the event loop, which has other things to do, knows that it runs."""
    running = asyncio.create_task(run(a_plugin(fake.script("sleep 600 & echo $! >new; mv new child; wait")), HOUR))
    for _ in range(turns):
        await asyncio.sleep(0)
    child = fake.folder / "child"
    assert eventually_blocking(child.exists)
    running.cancel()
    await asyncio.wait((running,), timeout=WAIT)
    assert running.cancelled()
    assert await eventually(lambda: not is_running(int(child.read_text())))


async def test_exec_plugin_does_not_wait_for_daemon(fake: Fake) -> None:
    plugin = a_plugin(fake.script("setsid sleep 600 & echo $! >child; echo done"))
    assert await run(plugin, HOUR) == b"done\n"
    os.kill(int((fake.folder / "child").read_text()), signal.SIGKILL)


def a_plugin(script: Path) -> Plugin:
    return Plugin("user admin", str(script), (), {"PATH": os.environ["PATH"]}, V1, "")


def is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        pytest.param({"command": None}, "the exec plugin has no command: add one", id="has no command"),
        pytest.param({"apiVersion": V1.replace("v1", "v1alpha1")}, "the exec plugin must use", id="is too old"),
        pytest.param({"interactiveMode": "Always"}, "the exec plugin needs a terminal", id="asks people"),
        pytest.param(
            {"interactiveMode": "x"}, "the exec plugin's interactiveMode must be Never", id="has a wrong mode"
        ),
    ],
)
def test_exec_plugin_spec_is_checked(changes: dict[str, Any], problem: str, fake: Fake) -> None:
    with pytest.raises(BadConfig, match=fake.line(problem)):
        fake.credentials(**changes)


def test_exec_plugin_with_other_credentials_is_refused(fake: Fake) -> None:
    user = {"token": SECRET, "exec": {"command": "login", "apiVersion": V1}}
    with pytest.raises(BadConfig, match=fake.line("has an exec plugin and other credentials: keep one of them")):
        load_kubeconfig(written(fake.folder / "config", a_kubeconfig(user=user)), env={})


async def test_exec_plugin_missing_shows_install_hint(fake: Fake) -> None:
    credentials = fake.credentials(command="no-such-login", installHint="get it from\nthe shop")
    problem = "cannot run no-such-login: No such file or directory: get it from the shop"
    with pytest.raises(BadConfig, match=fake.line(problem)):
        await credentials.current()


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        pytest.param(SECRET, "did not print JSON: run it manually", id="no JSON"),
        pytest.param("", "did not print JSON: run it manually", id="nothing"),
        pytest.param(b"\xff\xfe".decode("latin1"), "did not print JSON: run it manually", id="no text"),
        pytest.param(json.dumps([SECRET]), "did not print an ExecCredential: Expected `object`", id="a list"),
        pytest.param(
            json.dumps(a_credential(token=SECRET) | {"kind": "Pod"}), "did not print an ExecCredential", id="a Pod"
        ),
        pytest.param(json.dumps(a_credential(V1BETA1)), f"did not print {V1}", id="another version"),
        pytest.param(json.dumps(a_credential() | {"status": {}}), "printed neither a token nor", id="an empty status"),
        pytest.param(json.dumps(a_credential() | {"status": None}), "printed neither a token nor", id="no status"),
        pytest.param(json.dumps(a_credential(clientKeyData=SECRET)), "printed a certificate without", id="a key alone"),
        pytest.param(
            json.dumps(a_credential(clientCertificateData=SECRET, clientKeyData=SECRET)),
            ": certificate or key",
            id="junk",
        ),
        pytest.param(
            json.dumps(a_credential(token=SECRET, expirationTimestamp="soon")), "Invalid RFC3339", id="no real expiry"
        ),
        pytest.param(
            json.dumps(a_credential(token=f"{SECRET}\nX: y")), "the token has invalid characters", id="two headers"
        ),
    ],
)
async def test_exec_plugin_output_is_checked(answer: str, problem: str, fake: Fake) -> None:
    (fake.folder / "answer").write_text(answer, encoding="latin1")
    fake.script("cat answer")
    with pytest.raises(BadConfig, match=fake.line("")) as refused:
        await fake.credentials().current()
    assert problem in str(refused.value)
    assert str(refused.value).isprintable()
    assert SECRET not in str(refused.value)


async def test_explain_names_exec_plugin_and_expiry(fake: Fake) -> None:
    fake.answering(a_credential(expires=NOON))
    credentials = fake.credentials()
    await credentials.current()
    assert credentials.explain() == (
        f"credential of user admin in {fake.folder}/config from {fake.folder}/login "
        "expired 2026-11-01 12:00 UTC: log in with it again"
    )


async def test_exec_plugin_hides_secrets(fake: Fake, caplog: pytest.LogCaptureFixture) -> None:
    fake.answering(a_credential())
    caplog.set_level(0)
    credentials = fake.credentials(env=[{"name": "PASSWORD", "value": SECRET}], args=[SECRET])
    shown = await credentials.current()
    plugin = Plugin("user", sys.executable, (SECRET,), {"PASSWORD": SECRET}, V1, "")
    assert SECRET not in f"{credentials!r} {shown!r} {plugin!r} {credentials.explain()} {caplog.text}"
