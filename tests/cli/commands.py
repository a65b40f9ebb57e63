"""Runs the installed `virt-steward` as a person would."""

import asyncio
import json
import os
import pty
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile

import msgspec

from tests.forkserver import fork_server
from virt_steward.cli.documents import DOCUMENTS
from virt_steward_demo.cli.local import DOCUMENTS as LOCAL_DOCUMENTS

ANSWERS = {**DOCUMENTS, **LOCAL_DOCUMENTS}
PROGRAM = Path(sys.executable).with_name("virt-steward")
PATIENCE = 120
"""Seconds until a command counts as hanging; on a busy machine one second of work becomes many."""


@dataclass(frozen=True, slots=True)
class Ended:
    code: int
    stdout: str
    stderr: str


async def steward(*arguments: str, kubeconfig: Path, stdin: str = "", **env: str) -> Ended:
    """Run a command to its end, with nothing else of the user's configuration in reach."""
    known = {
        "PATH": os.environ["PATH"],
        "HOME": str(kubeconfig.parent),
        "KUBECONFIG": str(kubeconfig),
        "COLUMNS": "400",  # so that sentences stay on one line
        **env,
    }
    with TemporaryFile() as given, TemporaryFile() as out, TemporaryFile() as err:
        given.write(stdin.encode())
        given.seek(0)
        fork = fork_server().start(list(arguments), known, (given.fileno(), out.fileno(), err.fileno()))
        code = await fork.communicate(within=PATIENCE)
        out.seek(0)
        err.seek(0)
        ended = Ended(code, out.read().decode(), err.read().decode())
        if {"json", "--output=json"} & {*arguments} and ended.stdout:
            check_answer(arguments, ended.stdout)
        return ended


def check_answer(arguments: Sequence[str], text: str) -> None:
    """Check an answer by the type of its command: it has all of its fields, and no other."""
    command = next(name for name in _names_of(arguments) if name in ANSWERS)
    found = msgspec.json.decode(text, type=ANSWERS[command])
    assert json.loads(msgspec.json.encode(found)) == json.loads(text)


def _names_of(arguments: Sequence[str]) -> Iterator[str]:
    """`explain plan x` is the command `explain plan`; `approve x` is short for `approve profile x`."""
    yield " ".join(arguments[:2])
    yield arguments[0]
    yield f"{arguments[0]} {'installplan' if '/' in arguments[1] else 'profile'}"


async def on_a_terminal(*arguments: str, answers: str = "", interrupt_at: str = "", **env: str) -> str:
    """All that a person sees on their screen, who types these answers, or Ctrl-C when a text appears."""
    mine, theirs = pty.openpty()
    os.write(mine, answers.encode())
    known = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "TERM": "xterm", **env}
    process = await asyncio.create_subprocess_exec(
        PROGRAM, *arguments, stdin=theirs, stdout=theirs, stderr=theirs, env=known
    )
    os.close(theirs)
    seen = bytearray()
    try:
        async with asyncio.timeout(PATIENCE):
            with suppress(OSError):  # that is how a terminal ends
                while part := await asyncio.to_thread(os.read, mine, 4096):
                    seen += part
                    if interrupt_at and interrupt_at.encode() in seen:
                        process.send_signal(signal.SIGINT)
            await process.wait()
    finally:
        if process.returncode is None:
            process.kill()  # which also ends the reading
        os.close(mine)
    return seen.decode().replace("\r\n", "\n")
