"""A real browser: chromium from the PATH, else from apt, else that of playwright."""

import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, async_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
APT = "apt-get"
INSTALL = (APT, "install", "--yes", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=300", "chromium")
NONE_TO_BE_HAD = (
    "the console is tested in a browser, and none is to be had: install chromium, or let "
    "'python -m playwright install chromium' reach its server"
)
SECONDS_TO_INSTALL = 600
PICTURES = "VIRT_STEWARD_PICTURES"
"""The environment variable with the folder for screenshots."""


@cache
def executable() -> str:
    """The path of the browser; empty for that of playwright."""
    found = find_or_install()
    if found is None:
        pytest.fail(NONE_TO_BE_HAD)
    return found


def find_or_install() -> str | None:
    """The path of the browser; empty for that of playwright, None if none can be installed."""
    if found := _on_the_path():
        return found
    if os.geteuid() == 0 and shutil.which(APT):
        _runs(APT, "update")  # what is known of packages may be old, or nothing; if that fails it may do as it is
        if _runs(*INSTALL) and (found := _on_the_path()):
            return found
    return "" if _runs(sys.executable, "-m", "playwright", "install", "chromium") else None


@asynccontextmanager
async def a_browser() -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        found = executable()
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []  # chromium refuses a sandbox to root
        browser = await playwright.chromium.launch(executable_path=found or None, args=arguments)
        try:
            yield browser
        finally:
            await browser.close()


async def keep_picture(page: Page, name: str) -> None:
    """Take a screenshot, if a folder for screenshots is set."""
    if folder := os.environ.get(PICTURES):
        await page.screenshot(path=Path(folder) / f"{name}.png")


def _on_the_path() -> str:
    return next((str(Path(found)) for name in NAMES if (found := shutil.which(name))), "")


def _runs(*command: str) -> bool:
    try:
        done = subprocess.run(command, capture_output=True, check=False, timeout=SECONDS_TO_INSTALL)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
