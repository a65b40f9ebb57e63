"""`python -m tests.chaos`: runs seeds, and shortens the faults of one that fails."""

import argparse
import asyncio
import logging
import shutil
import sys
import tempfile
import time
from pathlib import Path

import msgspec
import structlog

from tests.chaos.faults import Fault, FaultList, faults_of
from tests.chaos.mutations import MUTATIONS
from tests.chaos.run import Outcome, run_seed
from tests.chaos.shrink import shortened
from tests.chaos.site import Site, a_judged_control_plane, a_site
from tests.chaos.workload import steps_of
from tests.checker.writes import LEASES

SEEDS = 40
MOST_TRIES = 12
SHOWN = 60


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--seeds", type=int, default=0, help=f"how many (1 with --seed, else {SEEDS})")
    parser.add_argument("--replay", type=Path, help="run the list of faults in a file instead")
    parser.add_argument(
        "--mutation", default="", help="plant bugs of tests/chaos/mutations.py: names with commas, or all"
    )
    parser.add_argument("--no-shrink", action="store_true", help="do not shorten the faults of a seed that fails")
    return parser.parse_args()


def lists_of(options: argparse.Namespace) -> list[FaultList]:
    if options.replay:
        return [FaultList.load(options.replay)]
    first, number = options.seed or 1, options.seeds or (1 if options.seed else SEEDS)
    return [FaultList(seed, faults_of(seed)) for seed in range(first, first + number)]


async def run(options: argparse.Namespace, folder: Path, site: Site) -> list[Outcome]:
    outcomes = []
    for one in lists_of(options):
        try:
            outcome = await run_seed(site, one, folder / f"seed-{one.seed}")
        except Exception as error:
            if options.seeds <= 1:
                raise
            print(f"seed {one.seed}: could not be run to its end: {error!r}", flush=True)
            continue
        print(outcome.report(), flush=True)
        outcomes.append(outcome)
        if not outcome.is_green:
            explain(outcome)
            await shrink(outcome, folder, site, 0 if options.no_shrink else MOST_TRIES)
    return outcomes


async def hunt(options: argparse.Namespace, folder: Path, site: Site) -> list[Outcome]:
    """Plant bugs, each until a seed catches it; what is returned are the last seeds of those that none caught."""
    missed = []
    for name in MUTATIONS if options.mutation == "all" else options.mutation.split(","):
        for one in lists_of(options):
            outcome = await run_seed(site, one, folder / f"{name}-{one.seed}", name)
            if not outcome.is_green:
                print(f"{name}: caught by seed {one.seed}: {outcome.verdict.violations[0]}", flush=True)
                if options.seed:  # somebody looks at this one
                    explain(outcome)
                    await shrink(outcome, folder, site, 0 if options.no_shrink else MOST_TRIES, name)
                break
        else:
            print(f"{name}: NOT CAUGHT", flush=True)
            missed.append(outcome)
    return missed


def explain(outcome: Outcome) -> None:
    for violation in outcome.verdict.violations[:20]:
        print(f"  {violation}")
    print(
        "  work:",
        *(f"    {one.at:.2f} s: {one.action} {one.number} {one.choice}" for one in steps_of(outcome.faults.seed)),
        sep="\n",
    )
    print("  faults:", *(f"    {one}" for one in outcome.faults.faults), sep="\n")
    writes = [one for one in outcome.history.versions if one.ref.resource != LEASES]
    print("  the last writes:", *(f"    {one}" for one in writes[-SHOWN:]), sep="\n", flush=True)


async def shrink(outcome: Outcome, folder: Path, site: Site, most_tries: int, mutation: str = "") -> None:
    """Print the shortened list, and keep both where `--replay` finds them."""
    seed = outcome.faults.seed
    kept = outcome.faults.save(Path(tempfile.mkdtemp(prefix="chaos-")) / f"seed-{seed}.json")
    print(f"  repeat it with --replay {kept}; beside it are the logs and all versions of all objects")
    for log in (folder / f"{mutation or 'seed'}-{seed}").glob("*.log"):
        shutil.copy(log, kept.parent)
    versions = (f"{one} {msgspec.json.encode(one.obj).decode()}\n" for one in outcome.history.versions)
    kept.with_name("versions.txt").write_text("".join(versions))
    broken = {one.invariant for one in outcome.verdict.violations}
    tries = 0

    async def fails(faults: tuple[Fault, ...]) -> bool:
        nonlocal tries
        tries += 1
        again = await run_seed(site, FaultList(seed, faults), folder / f"seed-{seed}-try-{tries}", mutation)
        return bool(broken & {one.invariant for one in again.verdict.violations})

    short = FaultList(seed, await shortened(outcome.faults.faults, fails, most_tries=most_tries))
    path = short.save(kept.with_name(f"seed-{seed}-short.json"))
    print(f"  shortened in {tries} runs to {len(short.faults)} faults, --replay {path}:")
    print(*(f"    {one}" for one in short.faults), sep="\n", flush=True)


async def judged(options: argparse.Namespace, folder: Path, control_plane: object) -> list[Outcome]:
    async with a_site(control_plane, folder) as site:
        return await (hunt if options.mutation else run)(options, folder, site)


def main() -> int:
    options = arguments()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))  # of the simulation
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="chaos-") as name:
        folder = Path(name)
        with a_judged_control_plane(folder / "controlplane") as control_plane:
            outcomes = asyncio.run(judged(options, folder, control_plane))
    red = [one.faults.seed for one in outcomes if not one.is_green]
    if options.mutation:
        return len(outcomes)
    print(
        f"{len(outcomes)} of {len(lists_of(options))} seeds, {sum(len(one.faults.faults) for one in outcomes)} faults,"
        f" {sum(one.verdict.writes for one in outcomes)} writes, {time.monotonic() - began:.0f} s;"
        f" {'all green' if not red else f'red: {red}'}"
    )
    return 1 if red or len(outcomes) < len(lists_of(options)) else 0


if __name__ == "__main__":
    sys.exit(main())
