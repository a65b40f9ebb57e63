"""One short seed on a control plane of its own, and the parts of chaos that need none."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.faults import (
    CRDS,
    LASTS,
    MEMBERS,
    ON_MEMBERS,
    ON_REPLICAS,
    ON_THE_CLUSTER,
    Fault,
    FaultList,
    faults_of,
    matches,
)
from tests.chaos.gateway import _last_states, resource_of
from tests.chaos.holds import Step
from tests.chaos.injection import Injector
from tests.chaos.mutations import MUTATIONS
from tests.chaos.run import run_work
from tests.chaos.shrink import shortened
from tests.chaos.site import a_judged_control_plane, a_site
from tests.chaos.walk import Change, changes_of
from tests.chaos.workload import OFTEN, Workload, steps_of
from virt_steward_demo.local.controlplane import ControlPlane

README = Path(__file__).with_name("README.md")
SHORT = FaultList(
    1,
    (
        Fault(0.4, "lost-answers", "*-*", amount=1),
        Fault(0.8, "stalled", "*-*", 0.5),
        Fault(1.2, "resets", "*-placement"),
        Fault(1.3, "silent", "east", 0.5),
    ),
)
STEPS = (
    Step(0.0, "activate"),
    Step(0.0, "subscribe"),
    Step(0.2, "machine", 1, "west"),
    Step(0.9, "approve"),
    Step(1.2, "ignore-service", 2),
    Step(1.4, "machine", 3),
    Step(1.5, "slow-plan", 4),
)


def test_seed_gives_the_same_faults_and_work() -> None:
    assert faults_of(7) == faults_of(7) != faults_of(8)
    assert steps_of(7) == steps_of(7) != steps_of(8)


def test_many_seeds_have_every_fault_and_every_step() -> None:
    kinds = {fault.kind for seed in range(200) for fault in faults_of(seed)}
    assert kinds == {*ON_REPLICAS, *ON_MEMBERS, *ON_THE_CLUSTER}
    assert {step.action for seed in range(200) for step in steps_of(seed)} >= {*OFTEN}


def test_every_fault_and_step_can_be_done() -> None:
    names = {kind.replace("-", "_") for kind in (*ON_REPLICAS, *ON_THE_CLUSTER)}
    assert {name for name in names if not hasattr(Injector, f"_{name}")} == set()
    assert {name for name in OFTEN if not hasattr(Workload, f"_{name.replace('-', '_')}")} == set()
    targets = {fault.target for seed in range(200) for fault in faults_of(seed) if fault.kind in ON_MEMBERS}
    assert targets == {*MEMBERS}
    assert all(fault.at <= LASTS for seed in range(200) for fault in faults_of(seed))
    assert len(CRDS) == len({*CRDS})


def test_target_means_accounts() -> None:
    accounts = ("a-advisor", "b-advisor", "a-approver")
    assert [matches("*-advisor", one) for one in accounts] == [True, True, False]
    assert [matches("a-*", one) for one in accounts] == [True, False, True]


def test_fault_list_survives_a_file(tmp_path: Path) -> None:
    assert FaultList.load(SHORT.save(tmp_path / "seed.json")) == SHORT


@pytest.mark.parametrize("needed", [(3,), (0, 7), (2, 4, 5)])
async def test_faults_are_shortened_to_those_that_matter(needed: tuple[int, ...]) -> None:
    async def fails(items: tuple[int, ...]) -> bool:
        return {*needed} <= {*items}

    assert await shortened(tuple(range(8)), fails, most_tries=100) == needed


async def test_shortening_ends_after_the_tries_that_it_has() -> None:
    tries = []

    async def fails(items: tuple[int, ...]) -> bool:
        tries.append(items)
        return False

    assert await shortened(tuple(range(8)), fails, most_tries=3) == tuple(range(8))
    assert len(tries) == 3


def test_hidden_states_are_all_but_the_last_of_each_object() -> None:
    def event(uid: str, version: int) -> bytes:
        return b'{"type":"MODIFIED","object":{"metadata":{"uid":"%s","resourceVersion":"%d"}}}\n' % (
            uid.encode(),
            version,
        )

    bookmark = b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9"}}}\n'
    batch = [event("a", 1), event("b", 2), event("a", 3), bookmark, b""]
    assert _last_states(batch) == [event("b", 2), event("a", 3), bookmark, b""]


def test_walk_changes_every_field_within_and_beyond_its_limits() -> None:
    number = {"type": "integer", "minimum": 1, "maximum": 9}
    schema = {
        "type": "object",
        "properties": {"mode": {"enum": ["On", "Off"]}, "deep": {"type": "object", "properties": {"number": number}}},
    }
    changes = changes_of(schema, 1)
    given = {path: [one.value for one in changes if one.path == path] for path in {one.path for one in changes}}
    assert sorted(given) == [("deep",), ("deep", "number"), ("mode",)]
    assert {*given["mode",]} == {"On", "Off", "no-such-value", None}
    assert {*given["deep", "number"]} == {0, 1, 5, 9, None}
    assert {"number": 1} in given["deep",]
    assert Change(("deep", "number"), 0).patch() == {"deep": {"number": 0}}
    assert changes_of(schema, 1) == changes != changes_of(schema, 2)
    assert {one.path for one in changes_of(schema, 1, fixed=("mode",))} == {("deep",), ("deep", "number")}


@pytest.mark.parametrize(
    ("path", "resource"),
    [
        ("/api/v1/namespaces/ops/services/metrics", "services"),
        ("/api/v1/namespaces/ops", "namespaces"),
        ("/apis/vitistack.io/v1alpha1/namespaces/team/machines/web/status", "machines.vitistack.io/status"),
        ("/apis/advisor.kubevirt.io/v1alpha1/virtplatformconfigs/one", "virtplatformconfigs.advisor.kubevirt.io"),
    ],
)
def test_trap_knows_resources_by_their_paths(path: str, resource: str) -> None:
    assert resource_of(path) == resource


def test_planted_bugs_fit_the_code_and_are_listed() -> None:
    for mutation in MUTATIONS.values():
        assert all(patch.source() for patch in mutation.patches)
    table = README.read_text().partition("| bug |")[2]
    listed = {line.split("`")[1] for line in table.splitlines() if line.startswith("| `")}
    assert listed == {*MUTATIONS}


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    with a_judged_control_plane(tmp_path_factory.mktemp("judged")) as started:
        yield started


async def test_short_seed_is_green(judged: ControlPlane, tmp_path: Path) -> None:
    async with a_site(judged, tmp_path) as site:
        outcome = await run_work(site, SHORT, STEPS, tmp_path / "seed", silent=1.5)
    assert [str(one) for one in outcome.verdict.violations] == []
    assert outcome.verdict.writes > 20, "too little happened to prove anything"
