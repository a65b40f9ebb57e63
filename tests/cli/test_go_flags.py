"""Flags of the Go operators."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cli.commands import steward
from virt_steward.cli.go_flags import NO_WEBHOOKS, translated

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("given", "kept", "hinted"),
    [
        ("--metrics-secure", ["--metrics-secure"], []),
        ("--metrics-secure=false --grace=1", ["--no-metrics-secure", "--grace=1"], []),
        ("--metrics-cert-path=/tls --metrics-cert-key k", ["--metrics-cert-path=/tls", "--metrics-cert-key", "k"], []),
        ("--zap-log-level debug --grace 1", ["--grace", "1"], ["--zap-log-level"]),
        ("-zap-devel", [], ["--zap-devel"]),
        ("--crd-validation-timeout=10s", [], ["--crd-validation-timeout"]),
        ("--zap-encoder", [], ["--zap-encoder"]),
        ("--leader-elect", ["--leader-elect"], []),
        ("--leader-elect=true", ["--leader-elect"], []),
        ("-leader-elect=false", ["--no-leader-elect"], []),
        ("--no-leader-elect", ["--no-leader-elect"], []),
        ("--enable-debug-server=false", ["--debug-bind-address=0"], ["--enable-debug-server"]),
        ("--enable-debug-server", [], ["--enable-debug-server"]),
        ("--unknown=1 word -x", ["--unknown=1", "word", "-x"], []),
    ],
)
def test_translated_drops_flags_without_meaning(given: str, kept: list[str], hinted: list[str]) -> None:
    found, hints = translated(given.split())
    assert found == kept
    assert [hint.split()[0] for hint in hints] == hinted


async def test_run_hints_at_flags_of_go_operators(tmp_path: Path) -> None:
    result = await steward("run", "--webhook-cert-path=/tls", "--controllers=nobody", kubeconfig=tmp_path / "none")
    assert result.stderr.splitlines() == [
        f"virt-steward: --webhook-cert-path is ignored: {NO_WEBHOOKS}",
        "virt-steward: unknown controller 'nobody'; choose from advisor, autopilot, approver, placement, console",
    ]
