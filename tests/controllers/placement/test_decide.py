from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.controllers.placement.builders import NO_SECRET, a_cluster, a_machine, a_view
from virt_steward.apis.meta import LabelSelector
from virt_steward.controllers.placement.decide import decide
from virt_steward.controllers.placement.fleet import ClusterRejected
from virt_steward.controllers.placement.observation import (
    CapacityFree,
    KubeVirtMissing,
    Machine,
    MemberCluster,
    Unreachable,
    VmAbsent,
    VmFound,
)
from virt_steward.controllers.placement.strategies import STRATEGIES
from virt_steward.controllers.placement.verdicts import Ask, Blocked, Chosen, PlacementReason

EAST, WEST = a_cluster("east", labels={"region": "east"}), a_cluster("west", labels={"region": "west"})
SOUTH = a_cluster("south", labels={"region": "west"})
NOWHERE = {"east": VmAbsent(), "west": VmAbsent()}


@pytest.mark.parametrize(
    ("machine", "clusters", "rules", "chosen", "by"),
    [
        pytest.param(a_machine(config="west"), (EAST, WEST), {}, "west", "explicit_annotation", id="its annotation"),
        pytest.param(
            a_machine(config="west"),
            (EAST, WEST),
            {"default_config": "east"},
            "west",
            "explicit_annotation",
            id="its annotation rather than the default",
        ),
        pytest.param(
            a_machine(selector="region=east"),
            (EAST, WEST),
            {},
            "east",
            "cluster_selector",
            id="the only one it selects",
        ),
        pytest.param(
            a_machine(cluster_selector=LabelSelector({"region": "east"})),
            (EAST, WEST),
            {},
            "east",
            "cluster_selector",
            id="the only one that its spec selects",
        ),
        pytest.param(
            a_machine(), (EAST, WEST), {"default_config": "east"}, "east", "environment_default", id="the default"
        ),
        pytest.param(
            a_machine(),
            (EAST, a_cluster("west", default=True)),
            {},
            "west",
            "default_flag",
            id="the one marked default",
        ),
        pytest.param(a_machine(), (EAST,), {}, "east", "the_only_one", id="the only one"),
        pytest.param(a_machine(config=""), (EAST,), {}, "east", "the_only_one", id="an empty annotation is none"),
        pytest.param(
            a_machine(selector="region=west"),
            (EAST, WEST, a_cluster("south", labels={"region": "west"}, default=True)),
            {"default_config": "east"},
            "south",
            "default_flag",
            id="a default that the selector leaves out does not count",
        ),
        pytest.param(
            a_machine(), (a_cluster("east", silent="no route"),), {}, "east", "the_only_one", id="it need not answer"
        ),
    ],
)
def test_the_cluster_is(
    machine: Machine, clusters: tuple[MemberCluster, ...], rules: dict[str, Any], chosen: str, by: str
) -> None:
    decision = decide(a_view(machine, *clusters, **rules))
    assert isinstance(decision.outcome, Chosen)
    assert (decision.outcome.cluster, decision.strategy) == (chosen, by)


@pytest.mark.parametrize(
    ("findings", "rules", "chosen", "words"),
    [
        pytest.param(
            {"east": VmAbsent(), "west": VmFound()}, {}, "west", "vm-my-vm exists there", id="where its VM is"
        ),
        pytest.param(
            {"east": Unreachable("timeout"), "west": VmFound()},
            {},
            "west",
            "vm-my-vm exists there; east did not answer",
            id="where its VM is, and who was silent is said",
        ),
        pytest.param(
            {"east": ClusterRejected("no"), "west": VmFound()},
            {},
            "west",
            "vm-my-vm exists there; east could not be searched",
            id="where its VM is, and who rejected us is not called silent",
        ),
        pytest.param(
            {"east": VmFound(), "west": VmAbsent()},
            {"vm_name": "{machine}"},
            "east",
            "my-vm exists there",
            id="by another name",
        ),
    ],
)
def test_a_machine_stays(findings: dict[str, Any], rules: dict[str, Any], chosen: str, words: str) -> None:
    outcome = decide(a_view(a_machine(), EAST, WEST, findings=findings, **rules)).outcome
    assert outcome == Chosen(chosen, words)


@pytest.mark.parametrize(
    ("machine", "clusters", "view", "reason", "text"),
    [
        pytest.param(
            a_machine(),
            (),
            {},
            PlacementReason.NO_CONFIGS,
            "machine default/my-vm has no KubevirtConfig reference and no KubevirtConfigs are available",
            id="no configs",
        ),
        pytest.param(
            a_machine(),
            (EAST, WEST, SOUTH),
            {"findings": NOWHERE | {"south": VmAbsent()}},
            PlacementReason.AMBIGUOUS,
            "machine default/my-vm has no KubevirtConfig reference and 3 configs are available - cannot determine "
            "placement. Please set annotation 'vitistack.io/kubevirt-config' or DEFAULT_KUBEVIRT_CONFIG env var",
            id="several configs and no VM",
        ),
        pytest.param(
            a_machine(config="north"),
            (EAST,),
            {},
            PlacementReason.CONFIG_NOT_FOUND,
            "KubevirtConfig north not found: annotation vitistack.io/kubevirt-config names it; "
            "create it, or name another",
            id="an annotation that names nobody",
        ),
        pytest.param(
            a_machine(),
            (EAST,),
            {"default_config": "north"},
            PlacementReason.CONFIG_NOT_FOUND,
            "KubevirtConfig north not found: DEFAULT_KUBEVIRT_CONFIG names it; create it, or name another",
            id="a default that names nobody",
        ),
        pytest.param(
            a_machine(config="east"),
            (a_cluster("east", unusable=NO_SECRET),),
            {},
            PlacementReason.SECRET_NOT_FOUND,
            NO_SECRET.because,
            id="a Secret that is missing",
        ),
        pytest.param(
            a_machine(),
            (a_cluster("east", default=True), a_cluster("west", default=True)),
            {},
            PlacementReason.TWO_DEFAULTS,
            "east and west are all marked as default: leave the mark on one",
            id="two defaults",
        ),
        pytest.param(
            a_machine(selector="region=north"),
            (EAST, WEST),
            {},
            PlacementReason.NOTHING_SELECTED,
            "no KubevirtConfig has labels that match region=north",
            id="a selector that matches nothing",
        ),
        pytest.param(
            a_machine(),
            (EAST, WEST),
            {"findings": {"east": VmFound(), "west": VmFound()}},
            PlacementReason.FOUND_TWICE,
            "vm-my-vm exists in east and west: delete all but one, or annotate the machine with the right one",
            id="a VM in two clusters",
        ),
        pytest.param(
            a_machine(),
            (EAST, WEST),
            {"findings": {"east": VmAbsent(), "west": Unreachable("no answer in 5 s")}},
            PlacementReason.CLUSTERS_SILENT,
            "vm-my-vm may exist in a cluster that does not answer (west: no answer in 5 s): "
            "mend that, or annotate the machine with the right one",
            id="nowhere, while one is silent",
        ),
        pytest.param(
            a_machine(),
            (EAST, WEST),
            {"findings": {"east": VmAbsent(), "west": ClusterRejected("west rejects us")}},
            PlacementReason.UNAUTHORIZED,
            "vm-my-vm may exist in a cluster that cannot be searched (west: west rejects us): "
            "mend that, or annotate the machine with the right one",
            id="nowhere, while one rejects our credentials",
        ),
        pytest.param(
            a_machine(),
            (EAST, WEST),
            {
                "findings": {
                    "east": Unreachable("away"),
                    "west": Unreachable("no Secret", PlacementReason.SECRET_NOT_FOUND),
                }
            },
            PlacementReason.SECRET_NOT_FOUND,
            "vm-my-vm may exist in a cluster that cannot be searched (east: away; west: no Secret): "
            "mend that, or annotate the machine with the right one",
            id="one silent, and one that waits for a person",
        ),
        pytest.param(
            a_machine(),
            (EAST, WEST),
            {"findings": {"east": VmFound(), "west": Unreachable("refused")}, "strict_search": True},
            PlacementReason.CLUSTERS_SILENT,
            "vm-my-vm exists in east, and may exist in a cluster that does not answer (west: refused): "
            "mend that, or annotate the machine with the right one",
            id="a silent one, where search is strict",
        ),
        pytest.param(
            a_machine(strategy="roulette"),
            (EAST, WEST),
            {"findings": NOWHERE},
            PlacementReason.UNKNOWN_STRATEGY,
            "there is no placement strategy roulette: use one of none, round-robin, least-loaded, spread, weight",
            id="an unknown strategy",
        ),
        pytest.param(
            a_machine(),
            (a_cluster("east", schedulable=False), a_cluster("west", silent="refused")),
            {"findings": NOWHERE, "strategy": "round-robin"},
            PlacementReason.NO_ROOM,
            "none of east, west is schedulable and reachable, and has KubeVirt and usable credentials",
            id="nobody who takes new ones",
        ),
        pytest.param(
            a_machine(),
            (EAST, WEST),
            {"findings": {"east": KubeVirtMissing(), "west": KubeVirtMissing()}, "strategy": "round-robin"},
            PlacementReason.NO_ROOM,
            "none of east, west is schedulable and reachable, and has KubeVirt and usable credentials; "
            "there is no KubeVirt in east, west",
            id="nobody who has KubeVirt",
        ),
    ],
)
def test_nothing_is_placed_with(
    machine: Machine, clusters: tuple[MemberCluster, ...], view: dict[str, Any], reason: PlacementReason, text: str
) -> None:
    assert decide(a_view(machine, *clusters, **view)).outcome == Blocked(reason, text)


def test_a_bad_selector_is_shown_with_what_is_wrong() -> None:
    outcome = decide(a_view(a_machine(selector="region=="), EAST, WEST)).outcome
    assert isinstance(outcome, Chosen | Blocked)
    outcome = decide(a_view(a_machine(selector="region in"), EAST, WEST)).outcome
    assert isinstance(outcome, Blocked)
    assert outcome.reason is PlacementReason.BAD_SELECTOR
    assert "'region in' is not a condition on a label" in outcome.because


def test_clusters_are_asked_only_when_nothing_else_decides_and_only_those_in_question() -> None:
    assert decide(a_view(a_machine(), EAST, WEST)).outcome == Ask(("east", "west"))
    assert decide(a_view(a_machine(), EAST, WEST, findings={"east": VmAbsent()})).outcome == Ask(("west",))
    assert decide(a_view(a_machine(selector="region=west"), EAST, WEST, SOUTH)).outcome == Ask(("south", "west"))


def test_a_machine_that_runs_on_a_cordoned_cluster_stays_there() -> None:
    cordoned = a_cluster("east", schedulable=False)
    outcome = decide(a_view(a_machine(), cordoned, WEST, findings={"east": VmFound(), "west": VmAbsent()})).outcome
    assert outcome == Chosen("east", "vm-my-vm exists there")


CORDONED = a_cluster("east", schedulable=False)


@pytest.mark.parametrize(
    ("machine", "clusters", "rules", "though"),
    [
        pytest.param(a_machine(), (CORDONED,), {}, "it is the only one", id="the only one"),
        pytest.param(
            a_machine(),
            (CORDONED, WEST),
            {"default_config": "east"},
            "DEFAULT_KUBEVIRT_CONFIG says east",
            id="the default",
        ),
        pytest.param(
            a_machine(),
            (a_cluster("east", schedulable=False, default=True), WEST),
            {},
            "it is marked as default",
            id="the one marked default",
        ),
        pytest.param(
            a_machine(selector="!region"),
            (CORDONED, WEST),
            {},
            "it is the only one that matches !region",
            id="the only one it selects",
        ),
    ],
)
def test_a_cordoned_cluster_gets_no_new_machine_even_as(
    machine: Machine, clusters: tuple[MemberCluster, ...], rules: dict[str, Any], though: str
) -> None:
    text = f"east takes no new machines, though {though}: set its spec.schedulable, or annotate the machine"
    assert decide(a_view(machine, *clusters, **rules)).outcome == Blocked(PlacementReason.NO_ROOM, text)


def test_a_cordoned_cluster_is_for_those_who_name_it() -> None:
    assert decide(a_view(a_machine(config="east"), CORDONED)).outcome == Chosen("east", "its annotation says east")


def test_a_config_that_cannot_be_read_is_not_passed_over_by_a_selector() -> None:
    unreadable = MemberCluster("bad", None, unusable=NO_SECRET)
    machine = a_machine(selector="region=west")
    assert decide(a_view(machine, EAST, WEST, unreadable)).outcome == Ask(("bad", "west"))
    assert decide(a_view(machine, EAST, unreadable)).outcome == Blocked(NO_SECRET.reason, NO_SECRET.because)


@pytest.mark.parametrize(
    "machine",
    [
        pytest.param(a_machine(config="a\n\x1b[31m" + "b" * 1000), id="its annotation"),
        pytest.param(a_machine(selector="a in\n\x1b[31m" + "b" * 1000), id="its selector"),
        pytest.param(a_machine(selector="a" + " " * 200_000 + "!"), id="a selector that takes minutes to read"),
        pytest.param(a_machine(strategy="a\n\x1b[31m" + "b" * 1000), id="its strategy"),
    ],
)
def test_a_sentence_stays_one_line_of_bounded_length_whatever_somebody_wrote_into(machine: Machine) -> None:
    outcome = decide(a_view(machine, EAST, WEST, findings=NOWHERE)).outcome
    assert isinstance(outcome, Blocked)
    assert outcome.because.isprintable()
    assert len(outcome.because) < 500


@pytest.mark.parametrize(
    ("provider", "config", "ours"),
    [
        pytest.param("", "", True, id="none named"),
        pytest.param("kubevirt", "", True, id="ours"),
        pytest.param("", "kubevirt", True, id="ours in the provider's configuration"),
        pytest.param("aws", "", False, id="another"),
        pytest.param("kubevirt", "aws", False, id="two that differ"),
    ],
)
def test_whose_machine_it_is(provider: str, config: str, ours: bool) -> None:
    assert a_machine(provider=provider, provider_config=config).is_ours is ours


clusters = st.lists(
    st.builds(
        a_cluster,
        st.sampled_from("abcd"),
        default=st.booleans(),
        schedulable=st.booleans(),
        unusable=st.sampled_from([None, NO_SECRET]),
        silent=st.sampled_from(["", "refused"]),
        machines=st.integers(0, 5),
        weight=st.integers(0, 1000),
        free=st.none() | st.builds(CapacityFree, st.floats(-1, 1), st.none() | st.floats(-1, 1)),
    ),
    unique_by=lambda one: one.name,
    max_size=4,
)


@given(
    clusters,
    st.dictionaries(
        st.sampled_from("abcd"), st.sampled_from([VmFound(), VmAbsent(), KubeVirtMissing(), Unreachable("refused")])
    ),
    st.sampled_from(["none", *STRATEGIES]),
    st.booleans(),
)
def test_every_machine_gets_an_answer_and_only_a_usable_cluster(
    all_clusters: list[MemberCluster], findings: dict[str, Any], strategy: str, strict: bool
) -> None:
    seen = a_view(a_machine(), *all_clusters, findings=findings, strategy=strategy, strict_search=strict)
    decision = decide(seen)
    by_name = {one.name: one for one in all_clusters}
    match decision.outcome:
        case Chosen(name):
            assert by_name[name].unusable is None
            holders = {one for one, finding in findings.items() if finding == VmFound() and one in by_name}
            if decision.strategy in {"existing_vm", "configured"}:
                assert holders <= {name}
                assert all(one in findings for one in by_name)
            if decision.strategy == "configured":
                assert by_name[name].schedulable
                assert findings[name] == VmAbsent()
                assert not any(isinstance(findings[one], Unreachable) for one in by_name)
        case Blocked(_, because):
            assert because
        case Ask(names):
            assert names
            assert not set(names) & set(findings)
