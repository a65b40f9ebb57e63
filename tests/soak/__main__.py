"""`python -m tests.soak`: works on all controllers for hours, and tests that what they hold does not grow."""

import argparse
import asyncio
import logging
import sys
import tempfile
from pathlib import Path

import msgspec
import structlog

from tests.chaos.site import a_judged_control_plane, a_site
from tests.soak.part import PartResult, run_part

LONGEST, SHORTEST = 30.0, 2.0
COLUMNS = "{:<10} {:<14} {:>9} {:>9} {:>11} {:>8}  {}"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--parts", type=int, default=4, help="how many, each with new processes (default: 4)")
    parser.add_argument("--first", type=int, default=1, help="number of the first part; each has seeds of its own")
    parser.add_argument(
        "--minutes",
        type=float,
        default=LONGEST,
        help=f"of each part, {SHORTEST:g} to {LONGEST:g} (default: {LONGEST:g}); short ones find only fast growth",
    )
    parser.add_argument("--json", type=Path, help="write results and samples to this file, after each part")
    options = parser.parse_args()
    if options.parts < 1 or not SHORTEST <= options.minutes <= LONGEST:
        parser.error(f"write --parts 1 or more, and --minutes {SHORTEST:g} to {LONGEST:g}")
    return options


def say(line: str) -> None:
    print(line, flush=True)


def table(result: PartResult) -> str:
    lines = [COLUMNS.format("", "", "first", "last", "per hour", "allowed", "verdict")]
    for one in result.judgements:
        trend = one.trend
        figures = (f"{trend.first:.1f}", f"{trend.last:.1f}", f"{trend.per_hour:+.1f}", f"{trend.allowed:+.1f}")
        lines.append(COLUMNS.format(one.who, one.quantity, *figures, trend.verdict))
    return "\n".join(lines)


def run(number: int, minutes: float) -> PartResult:
    """On a control plane of its own."""
    with tempfile.TemporaryDirectory(prefix="soak-") as name:
        folder = Path(name)
        with a_judged_control_plane(folder / "controlplane") as control_plane:

            async def judged() -> PartResult:
                async with a_site(control_plane, folder) as site:
                    return await run_part(site, number, minutes * 60, folder / "processes", say)

            return asyncio.run(judged())


def main() -> int:
    options = arguments()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))  # of the simulation
    results: list[PartResult] = []
    for number in range(options.first, options.first + options.parts):
        result = run(number, options.minutes)
        results.append(result)
        state = "green" if result.is_green else "RED"
        say(
            f"part {number}: {state}, {result.minutes:g} minutes, {result.rounds} rounds, {result.writes} writes,"
            f" {len(result.problems)} problems, at most {result.longest_gap:.0f} s between samples"
        )
        say(table(result))
        if options.json:
            options.json.write_bytes(msgspec.json.encode(results))
    red = [one.number for one in results if not one.is_green]
    say(f"{len(results)} parts, {'all green' if not red else f'red: {red}'}")
    return 1 if red else 0


if __name__ == "__main__":
    sys.exit(main())
