"""Runs the installed `virt-steward` as a person would."""

import asyncio
import os
import sys
from dataclasses import dataclass
from pathlib import Path

PROGRAM = Path(sys.executable).with_name("virt-steward")
PATIENCE = 30


@dataclass(frozen=True, slots=True)
class Ended:
    code: int
    stdout: str
    stderr: str


async def steward(*arguments: str, kubeconfig: Path, **env: str) -> Ended:
    """Run a command to its end, with nothing else of the user's configuration in reach."""
    process = await asyncio.create_subprocess_exec(
        PROGRAM,
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(kubeconfig.parent),
            "KUBECONFIG": str(kubeconfig),
            "COLUMNS": "400",  # so that sentences stay on one line
            **env,
        },
    )
    try:
        out, err = await asyncio.wait_for(process.communicate(), PATIENCE)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode is not None
    return Ended(process.returncode, out.decode(), err.decode())
