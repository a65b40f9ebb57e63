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

from tests.eventually import eventually, soon
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
async def test_a_plugin_gives_a_token_in(version: str, fake: Fake) -> None:
    fake.answering(a_credential(version))
    assert token(await fake.credentials(apiVersion=version).current()) == "1"


async def test_a_plugin_gives_a_certificate(fake: Fake) -> None:
    pair = a_pair()
    fake.answering(a_credential(clientCertificateData=pair.chain.decode(), clientKeyData=pair.key.decode()))
    shown = await fake.credentials().current()
    assert shown.headers == ()
    assert shown.client_certificate is not None
    assert (shown.client_certificate.chain, shown.client_certificate.key) == (pair.chain, pair.key)


async def test_a_plugin_gets_its_arguments_environment_and_question(fake: Fake) -> None:
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


async def test_a_plugin_is_told_about_the_cluster_only_if_it_asks(fake: Fake) -> None:
    fake.script('printf "%s" "$KUBERNETES_EXEC_INFO" >seen; exit 1')
    with pytest.raises(Unavailable):
        await fake.credentials().current()
    assert json.loads((fake.folder / "seen").read_text())["spec"] == {"interactive": False}


async def test_many_requests_share_one_run(fake: Fake) -> None:
    fake.answering(a_credential())
    credentials = fake.credentials()
    shown = await asyncio.gather(*(credentials.current() for _ in range(20)))
    assert {token(each) for each in shown} == {"1"}
    assert fake.runs == 1


async def test_a_request_that_gives_up_leaves_the_run_to_the_others(fake: Fake) -> None:
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


async def test_an_expired_credential_is_renewed_before_it_is_shown(fake: Fake) -> None:
    fake.answering(a_credential(expires=NOON + HOUR))
    credentials = fake.credentials()
    assert token(await credentials.current()) == "1"
    fake.clock.now = NOON + HOUR - EARLY - timedelta(seconds=1)
    assert token(await credentials.current()) == "1"
    assert fake.runs == 1
    fake.clock.now = NOON + HOUR
    assert token(await credentials.current()) == "2"


async def test_a_credential_about_to_expire_is_shown_while_its_successor_is_fetched(fake: Fake) -> None:
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


async def test_a_credential_without_expiry_is_kept(fake: Fake) -> None:
    fake.answering(a_credential())
    credentials = fake.credentials()
    await credentials.current()
    fake.clock.now = NOON + 10_000 * HOUR
    assert token(await credentials.current()) == "1"


async def test_a_refused_credential_is_renewed_once_for_all_who_were_refused(fake: Fake) -> None:
    fake.answering(a_credential())
    credentials = fake.credentials()
    used = await credentials.current()
    assert await asyncio.gather(*(credentials.rejected(used) for _ in range(5))) == [True] * 5
    assert await credentials.rejected(used)
    assert token(await credentials.current()) == "2"
    assert fake.runs == 2


async def test_nothing_newer_is_to_be_tried_when_the_plugin_repeats_itself(fake: Fake) -> None:
    fake.answering(a_credential(token=SECRET))
    credentials = fake.credentials()
    assert not await credentials.rejected(await credentials.current())


async def test_a_failed_plugin_is_run_again_only_after_a_pause(fake: Fake) -> None:
    fake.script("echo first >&2; echo 'you are\tlogged out' >&2; exit 3")
    credentials = fake.credentials()
    for _ in range(3):
        with pytest.raises(Unavailable, match=r"login failed with code 3: you are logged out$"):
            await credentials.current()
    assert fake.runs == 1
    fake.answering(a_credential())
    fake.clock.now += PAUSE
    assert token(await credentials.current()) == "2"


async def test_a_plugin_that_hangs_is_given_up(fake: Fake) -> None:
    plugin = a_plugin(fake.script("sleep 600"))
    with pytest.raises(TimedOut, match=r"^user admin: .*login gave no credential within 0.1 s: run it by hand"):
        await ExecCredentials(plugin, fake.clock, patience=timedelta(seconds=0.1)).current()


async def test_an_abandoned_plugin_is_ended_with_what_it_started(fake: Fake) -> None:
    running = asyncio.create_task(run(a_plugin(fake.script("sleep 600 & echo $! >new; mv new child; wait")), HOUR))
    child = fake.folder / "child"
    assert await soon(child.exists)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert await soon(lambda: not is_running(int(child.read_text())))


@pytest.mark.parametrize("turns", range(2, 8))
async def test_a_plugin_that_is_abandoned_while_it_starts_is_ended_with_what_it_started(fake: Fake, turns: int) -> None:
    """It may have begun its work before the event loop, which has other things to do, knows that it runs."""
    running = asyncio.create_task(run(a_plugin(fake.script("sleep 600 & echo $! >new; mv new child; wait")), HOUR))
    for _ in range(turns):
        await asyncio.sleep(0)
    child = fake.folder / "child"
    assert eventually(child.exists)
    running.cancel()
    await asyncio.wait((running,), timeout=WAIT)
    assert running.cancelled()
    assert await soon(lambda: not is_running(int(child.read_text())))


async def test_a_daemon_that_a_plugin_leaves_behind_is_not_waited_for(fake: Fake) -> None:
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
        pytest.param({"command": None}, "its exec plugin has no command: add one", id="has no command"),
        pytest.param({"apiVersion": V1.replace("v1", "v1alpha1")}, "its exec plugin must speak", id="is too old"),
        pytest.param({"interactiveMode": "Always"}, "its exec plugin wants a person at a terminal", id="asks people"),
        pytest.param({"interactiveMode": "x"}, "its exec plugin's interactiveMode is none of", id="has a wrong mode"),
    ],
)
def test_a_plugin_is_refused_that(changes: dict[str, Any], problem: str, fake: Fake) -> None:
    with pytest.raises(BadConfig, match=fake.line(problem)):
        fake.credentials(**changes)


def test_a_plugin_beside_other_credentials_is_refused(fake: Fake) -> None:
    user = {"token": SECRET, "exec": {"command": "login", "apiVersion": V1}}
    with pytest.raises(BadConfig, match=fake.line("has an exec plugin and other credentials: keep one of them")):
        load_kubeconfig(written(fake.folder / "config", a_kubeconfig(user=user)), env={})


async def test_a_missing_plugin_is_refused_with_its_install_hint(fake: Fake) -> None:
    credentials = fake.credentials(command="no-such-login", installHint="get it from\nthe shop")
    problem = "cannot run no-such-login: No such file or directory: get it from the shop"
    with pytest.raises(BadConfig, match=fake.line(problem)):
        await credentials.current()


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        pytest.param(SECRET, "printed no JSON: run it by hand", id="no JSON"),
        pytest.param("", "printed no JSON: run it by hand", id="nothing"),
        pytest.param(b"\xff\xfe".decode("latin1"), "printed no JSON: run it by hand", id="no text"),
        pytest.param(json.dumps([SECRET]), "printed no ExecCredential: Expected `object`", id="a list"),
        pytest.param(json.dumps(a_credential(token=SECRET) | {"kind": "Pod"}), "printed something else", id="a Pod"),
        pytest.param(json.dumps(a_credential(V1BETA1)), f"did not answer in {V1}", id="another version"),
        pytest.param(json.dumps(a_credential() | {"status": {}}), "gave neither a token nor", id="an empty status"),
        pytest.param(json.dumps(a_credential() | {"status": None}), "gave neither a token nor", id="no status"),
        pytest.param(json.dumps(a_credential(clientKeyData=SECRET)), "gave a certificate without", id="a key alone"),
        pytest.param(
            json.dumps(a_credential(clientCertificateData=SECRET, clientKeyData=SECRET)),
            ": certificate or key",
            id="junk",
        ),
        pytest.param(
            json.dumps(a_credential(token=SECRET, expirationTimestamp="soon")), "Invalid RFC3339", id="no real expiry"
        ),
        pytest.param(json.dumps(a_credential(token=f"{SECRET}\nX: y")), "the token has characters", id="two headers"),
    ],
)
async def test_one_line_without_secrets_refuses_a_plugin_that_prints(answer: str, problem: str, fake: Fake) -> None:
    (fake.folder / "answer").write_text(answer, encoding="latin1")
    fake.script("cat answer")
    with pytest.raises(BadConfig, match=fake.line("")) as refused:
        await fake.credentials().current()
    assert problem in str(refused.value)
    assert str(refused.value).isprintable()
    assert SECRET not in str(refused.value)


async def test_an_explanation_names_the_plugin_and_when_its_credential_expired(fake: Fake) -> None:
    fake.answering(a_credential(expires=NOON))
    credentials = fake.credentials()
    await credentials.current()
    assert credentials.explain() == (
        f"credential that {fake.folder}/login gave user admin in {fake.folder}/config "
        "expired 2026-11-01 12:00 UTC: log in with it again"
    )


async def test_no_secret_of_a_plugin_shows_in_a_repr_or_a_log(fake: Fake, caplog: pytest.LogCaptureFixture) -> None:
    fake.answering(a_credential())
    caplog.set_level(0)
    credentials = fake.credentials(env=[{"name": "PASSWORD", "value": SECRET}], args=[SECRET])
    shown = await credentials.current()
    plugin = Plugin("user", sys.executable, (SECRET,), {"PASSWORD": SECRET}, V1, "")
    assert SECRET not in f"{credentials!r} {shown!r} {plugin!r} {credentials.explain()} {caplog.text}"
