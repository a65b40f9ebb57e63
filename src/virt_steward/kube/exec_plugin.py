"""Credentials from an exec plugin of a kubeconfig: run it, check its output, run it again before they expire."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import tempfile
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, BinaryIO, cast

import msgspec

from virt_steward.kube.credentials import Authentication, bearer, checked, validity
from virt_steward.kube.errors import KubeError, TimedOut, Unavailable, one_line, unusable
from virt_steward.kube.tls import KeyPair

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import Callable, Mapping

EARLY = timedelta(seconds=30)
"""A credential is renewed this long before it expires."""
PATIENCE = timedelta(seconds=30)
"""The timeout of one run."""
PAUSE = timedelta(seconds=5)
"""The minimum time between a failed run and the next, however many requests need it."""


@dataclass(frozen=True, slots=True)
class Plugin:
    """A command that prints an ExecCredential."""

    owner: str
    """The user of the kubeconfig, for messages."""
    command: str
    args: tuple[str, ...] = field(repr=False)
    environment: Mapping[str, str] = field(repr=False)
    api_version: str
    hint: str
    """What to do when the command cannot be run."""


@dataclass(frozen=True, slots=True)
class Issued:
    """The credential from a run."""

    authentication: Authentication
    expires: datetime | None


@dataclass(frozen=True, slots=True)
class PluginFailed:
    """The error of a run, and when it happened."""

    error: KubeError
    at: datetime


class ExecCredentials:
    """Runs the plugin once for all requests that wait for it; a caller that is cancelled does not stop it."""

    def __init__(self, plugin: Plugin, now: Callable[[], datetime], patience: timedelta = PATIENCE) -> None:
        self._plugin = plugin
        self._now = now
        self._patience = patience
        self._issued: Issued | None = None
        self._failed: PluginFailed | None = None
        self._renewal: asyncio.Task[Issued | PluginFailed] | None = None

    async def current(self) -> Authentication:
        issued = self._issued
        if issued and not self._expires_within(EARLY, issued):
            return issued.authentication
        renewal = self._renew()
        if issued and not self._expires_within(timedelta(0), issued):  # still valid while the renewal runs
            return issued.authentication
        return _given(await asyncio.shield(renewal))

    async def rejected(self, used: Authentication) -> bool:
        if self._issued and self._issued.authentication != used:  # renewed since that request was sent
            return True
        return _given(await asyncio.shield(self._renew())) != used

    def explain(self) -> str:
        expires = self._issued.expires if self._issued else None
        credential = f"credential of {self._plugin.owner} from {self._plugin.command}"
        return one_line(f"{credential} {validity(expires, self._now())}: log in with it again")

    def _expires_within(self, margin: timedelta, issued: Issued) -> bool:
        return issued.expires is not None and issued.expires <= self._now() + margin

    def _renew(self) -> asyncio.Task[Issued | PluginFailed]:
        if self._renewal is None or self._renewal.done():
            self._renewal = asyncio.create_task(self._run_unless_just_failed())
        return self._renewal

    async def _run_unless_just_failed(self) -> Issued | PluginFailed:
        if self._failed and self._failed.at <= self._now() < self._failed.at + PAUSE:  # clocks may be set back
            return self._failed
        try:
            self._issued = issued = read_credential(await run(self._plugin, self._patience), self._plugin)
        except KubeError as error:
            self._failed = failed = PluginFailed(error, self._now())
            return failed
        return issued


async def run(plugin: Plugin, patience: timedelta) -> bytes:
    """The output of the plugin. It goes into files, since a daemon that it starts could keep pipes open for ever."""
    with _scratch() as output, _scratch() as complaint:
        process = await _started(plugin, output, complaint)
        try:
            async with asyncio.timeout(patience.total_seconds()):
                await process.wait()
        except TimeoutError:
            late = f"{plugin.command} timed out after {patience.total_seconds():g} s"
            raise TimedOut(one_line(f"{plugin.owner}: {late}: run it manually to see why")) from None
        finally:
            if process.returncode is None:
                await _end(process)
        if process.returncode:
            last = _read(complaint).decode(errors="replace").strip().rpartition("\n")[2][:300] or "no output"
            failed = f"{plugin.command} failed with exit code {process.returncode}: {last}"
            raise Unavailable(one_line(f"{plugin.owner}: {failed}"))
        return _read(output)


async def _started(plugin: Plugin, output: BinaryIO, complaint: BinaryIO) -> Process:
    """Start the process; if the caller is cancelled meanwhile, end it, so that nothing keeps running."""
    starting = asyncio.create_task(_start(plugin, output, complaint))
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        with contextlib.suppress(KubeError):
            await _end(await starting)
        raise


async def _start(plugin: Plugin, output: BinaryIO, complaint: BinaryIO) -> Process:
    try:
        return await asyncio.create_subprocess_exec(
            plugin.command,
            *plugin.args,
            env=plugin.environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=complaint,
            start_new_session=True,  # a process group of its own, so that all of it can be killed
        )
    except (OSError, ValueError) as error:  # ValueError: a NUL somewhere
        reason = getattr(error, "strerror", None) or "not a command"
        raise unusable(plugin.owner, f"cannot run {plugin.command}: {reason}: {plugin.hint}") from None


async def _end(process: Process) -> None:
    """Kill the process and its children."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()


def _scratch() -> BinaryIO:
    """A file without a name, in memory where the system supports that, since its content is secret."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("exec-plugin"), "w+b")
    return cast("BinaryIO", tempfile.TemporaryFile())


def _read(scratch: BinaryIO) -> bytes:
    scratch.seek(0)
    return scratch.read()


class _ExecStatus(msgspec.Struct, rename="camel"):
    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None
    expiration_timestamp: Annotated[datetime, msgspec.Meta(tz=True)] | None = None


class _ExecCredential(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str
    status: _ExecStatus | None = None


def read_credential(output: bytes, plugin: Plugin) -> Issued:
    where = f"{plugin.owner}: {plugin.command}"
    try:
        answer = msgspec.json.decode(output, type=_ExecCredential)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        problem = (
            f"did not print an ExecCredential: {error}"
            if isinstance(error, msgspec.ValidationError)
            else "did not print JSON"
        )
        raise unusable(where, f"{problem}: run it manually to see why") from None
    if answer.kind != "ExecCredential":
        raise unusable(where, "did not print an ExecCredential: run it manually to see why")
    if answer.api_version != plugin.api_version:
        raise unusable(where, f"did not print {plugin.api_version}: set the apiVersion that this plugin uses")
    status = answer.status or _ExecStatus()
    return Issued(_authentication(status, where), status.expiration_timestamp)


def _authentication(status: _ExecStatus, where: str) -> Authentication:
    chain, key = status.client_certificate_data, status.client_key_data
    if bool(chain) != bool(key):
        raise unusable(
            where, "printed a certificate without a key, or a key without a certificate: run it manually to see why"
        )
    if not (status.token or chain):
        raise unusable(where, "printed neither a token nor a certificate: run it manually to see why")
    return Authentication(
        headers=bearer(status.token, where) if status.token else (),
        client_certificate=checked(KeyPair(where, chain.encode(), key.encode())) if chain and key else None,
    )


def _given(outcome: Issued | PluginFailed) -> Authentication:
    match outcome:
        case Issued(authentication=authentication):
            return authentication
        case PluginFailed(error=error):
            raise error.with_traceback(None)  # shared by all callers that waited
