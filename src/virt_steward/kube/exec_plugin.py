"""Credentials from a kubeconfig's exec plugin: run it, check what it says, run it again when that expires."""

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
from virt_steward.kube.tls import ClientCertificate

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import Callable, Mapping

EARLY = timedelta(seconds=30)
"""A credential is renewed this long before it expires, so that no request carries a dead one."""
PATIENCE = timedelta(seconds=30)
"""How long one run may take."""
PAUSE = timedelta(seconds=5)
"""After a failed run the next one waits, however many requests ask."""


@dataclass(frozen=True, slots=True)
class Plugin:
    """A command that prints an ExecCredential."""

    owner: str
    """Whose plugin this is, for people."""
    command: str
    args: tuple[str, ...] = field(repr=False)
    environment: Mapping[str, str] = field(repr=False)
    api_version: str
    hint: str
    """What to do when the command cannot be run."""


@dataclass(frozen=True, slots=True)
class Issued:
    """What a run gave."""

    authentication: Authentication
    expires: datetime | None


@dataclass(frozen=True, slots=True)
class PluginFailed:
    """Why a run gave nothing, and when."""

    error: KubeError
    at: datetime


class ExecCredentials:
    """One run at a time, shared by all requests that wait for it; a caller that gives up does not end it."""

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
        if issued and not self._expires_within(timedelta(0), issued):  # good enough while a new one is on its way
            return issued.authentication
        return _given(await asyncio.shield(renewal))

    async def rejected(self, used: Authentication) -> bool:
        if self._issued and self._issued.authentication != used:  # renewed since that request was sent
            return True
        return _given(await asyncio.shield(self._renew())) != used

    def explain(self) -> str:
        expires = self._issued.expires if self._issued else None
        gave = f"credential that {self._plugin.command} gave {self._plugin.owner}"
        return one_line(f"{gave} {validity(expires, self._now())}: log in with it again")

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
    """What the plugin prints. Into files, not pipes: a daemon that it leaves behind could hold those for ever."""
    with _scratch() as output, _scratch() as complaint:
        process = await _started(plugin, output, complaint)
        try:
            async with asyncio.timeout(patience.total_seconds()):
                await process.wait()
        except TimeoutError:
            took = f"{plugin.command} gave no credential within {patience.total_seconds():g} s"
            raise TimedOut(one_line(f"{plugin.owner}: {took}: run it by hand to see why")) from None
        finally:
            if process.returncode is None:
                await _end(process)
        if process.returncode:
            last = _read(complaint).decode(errors="replace").strip().rpartition("\n")[2][:300] or "it did not say why"
            failed = f"{plugin.command} failed with code {process.returncode}: {last}"
            raise Unavailable(one_line(f"{plugin.owner}: {failed}"))
        return _read(output)


async def _started(plugin: Plugin, output: BinaryIO, complaint: BinaryIO) -> Process:
    """Started as a whole or not at all, so that whoever loses patience in between leaves nothing running."""
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
            start_new_session=True,  # a group of its own, so that all of it can be ended
        )
    except (OSError, ValueError) as error:  # ValueError: a NUL somewhere
        reason = getattr(error, "strerror", None) or "not a command"
        raise unusable(plugin.owner, f"cannot run {plugin.command}: {reason}: {plugin.hint}") from None


async def _end(process: Process) -> None:
    """With whatever it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()


def _scratch() -> BinaryIO:
    """A file that nobody else finds; in memory where the system knows how, since what it takes is secret."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("exec-plugin"), "w+b")
    return cast("BinaryIO", tempfile.TemporaryFile())


def _read(scratch: BinaryIO) -> bytes:
    scratch.seek(0)
    return scratch.read()


class _Status(msgspec.Struct, rename="camel"):
    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None
    expiration_timestamp: Annotated[datetime, msgspec.Meta(tz=True)] | None = None


class _ExecCredential(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str
    status: _Status | None = None


def read_credential(output: bytes, plugin: Plugin) -> Issued:
    where = f"{plugin.owner}: {plugin.command}"
    try:
        answer = msgspec.json.decode(output, type=_ExecCredential)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        problem = (
            f"printed no ExecCredential: {error}" if isinstance(error, msgspec.ValidationError) else "printed no JSON"
        )
        raise unusable(where, f"{problem}: run it by hand to see why") from None
    if answer.kind != "ExecCredential":
        raise unusable(where, "printed something else than an ExecCredential: run it by hand to see why")
    if answer.api_version != plugin.api_version:
        raise unusable(where, f"did not answer in {plugin.api_version}: set the apiVersion that this plugin speaks")
    status = answer.status or _Status()
    return Issued(_authentication(status, where), status.expiration_timestamp)


def _authentication(status: _Status, where: str) -> Authentication:
    chain, key = status.client_certificate_data, status.client_key_data
    if bool(chain) != bool(key):
        raise unusable(where, "gave a certificate without its key, or a key alone: run it by hand to see why")
    if not (status.token or chain):
        raise unusable(where, "gave neither a token nor a certificate: run it by hand to see why")
    return Authentication(
        headers=bearer(status.token, where) if status.token else (),
        client_certificate=checked(ClientCertificate(where, chain.encode(), key.encode())) if chain and key else None,
    )


def _given(outcome: Issued | PluginFailed) -> Authentication:
    match outcome:
        case Issued(authentication=authentication):
            return authentication
        case PluginFailed(error=error):
            raise error.with_traceback(None)  # shared by all who waited
