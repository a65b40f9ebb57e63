"""Fixtures for what is deployed."""

import os
from pathlib import Path

import pytest

from tests.promtool import find_or_build


@pytest.fixture(scope="session")
def promtool() -> Path:
    """Prometheus' own checker of rules."""
    return find_or_build(os.environ)
