from typing import Any

import pytest

from tests.controllers.placement.builders import NO_SECRET, a_cluster, a_machine, a_view
from virt_steward.apis.meta import LabelSelector
from virt_steward.controllers.placement.candidates import cordoned
from virt_steward.controllers.placement.decide import decide, trace
from virt_steward.controllers.placement.fleet import ClusterRejected
from virt_steward.controllers.placement.observation import (
    KubeVirtMissing,
    Machine,
    MemberCluster,
    Unreachable,
    VmAbsent,
    VmFound,
)
from virt_steward.controllers.placement.rules import RULES
from virt_steward.controllers.placement.rules.existing_vm import REMEDY
from virt_steward.controllers.placement.strategies import STRATEGY_NAMES
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
            a_machine(),
            (a_cluster("east", unreachable="no route"),),
            {},
            "east",
            "the_only_one",
            id="it need not answer",
        ),
    ],
)
def test_decide_chooses_cluster_by_rule(
    machine: Machine, clusters: tuple[MemberCluster, ...], rules: dict[str, Any], chosen: str, by: str
) -> None:
    decision = decide(a_view(machine, *clusters, **rules))
    assert isinstance(decision.outcome, Chosen)
    assert (decision.outcome.cluster, decision.rule.name) == (chosen, by)


@pytest.mark.parametrize(
    ("findings", "rules", "chosen", "words"),
    [
        pytest.param(
            {"east": VmAbsent(), "west": VmFound()}, {}, "west", "VM vm-my-vm exists there", id="where its VM is"
        ),
        pytest.param(
            {"east": Unreachable("timeout"), "west": VmFound()},
            {},
            "west",
            "VM vm-my-vm exists there; east unreachable",
            id="where its VM is, and who was silent is said",
        ),
        pytest.param(
            {"east": ClusterRejected("no"), "west": VmFound()},
            {},
            "west",
            "VM vm-my-vm exists there; east could not be searched",
            id="where its VM is, and who rejected us is not called silent",
        ),
        pytest.param(
            {"east": VmFound(), "west": VmAbsent()},
            {"vm_names": ("{machine}",)},
            "east",
            "VM my-vm exists there",
            id="by another name",
        ),
        pytest.param(
            {"east": VmFound("my-vm"), "west": VmAbsent()},
            {"vm_names": ("vm-{machine}", "{machine}")},
            "east",
            "VM my-vm exists there",
            id="by one of two names",
        ),
    ],
)
def test_decide_keeps_machine_where_its_vm_is(
    findings: dict[str, Any], rules: dict[str, Any], chosen: str, words: str
) -> None:
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
            NO_SECRET.message,
            id="a Secret that is missing",
        ),
        pytest.param(
            a_machine(),
            (a_cluster("east", default=True), a_cluster("west", default=True)),
            {},
            PlacementReason.TWO_DEFAULTS,
            "east and west all have spec.default: true; keep it on one of these KubevirtConfigs",
            id="two defaults",
        ),
        pytest.param(
            a_machine(selector="region=north"),
            (EAST, WEST),
            {},
            PlacementReason.NOTHING_SELECTED,
            "no KubevirtConfig has labels that match region=north: label one, or correct the selector",
            id="a selector that matches nothing",
        ),
        pytest.param(
            a_machine(),
            (EAST, WEST),
            {"findings": {"east": VmFound(), "west": VmFound()}},
            PlacementReason.FOUND_TWICE,
            "VM vm-my-vm exists in east and west: delete all but one, or set the annotation "
            "vitistack.io/kubevirt-config to choose a cluster",
            id="a VM in two clusters",
        ),
        pytest.param(
            a_machine(),
            (EAST, WEST),
            {"findings": {"east": VmAbsent(), "west": Unreachable("cluster west: unreachable: timed out after 5 s")}},
            PlacementReason.CLUSTERS_SILENT,
            "VM vm-my-vm may exist in a cluster that is unreachable (cluster west: unreachable: timed out after 5 s). "
            "Fix the cluster's access, or set the annotation vitistack.io/kubevirt-config to choose a cluster",
            id="nowhere, while one is silent",
        ),
        pytest.param(
            a_machine(),
            (EAST, WEST),
            {"findings": {"east": VmAbsent(), "west": ClusterRejected("cluster west: unauthorized (401)")}},
            PlacementReason.UNAUTHORIZED,
            f"VM vm-my-vm may exist in a cluster that cannot be searched (cluster west: unauthorized (401)). {REMEDY}",
            id="nowhere, while one rejects our credentials",
        ),
        pytest.param(
            a_machine(),
            (EAST, WEST),
            {
                "findings": {
                    "east": Unreachable("east away"),
                    "west": Unreachable("west no Secret", PlacementReason.SECRET_NOT_FOUND),
                }
            },
            PlacementReason.SECRET_NOT_FOUND,
            f"VM vm-my-vm may exist in a cluster that cannot be searched (east away; west no Secret). {REMEDY}",
            id="one silent, and one that waits for a person",
        ),
        pytest.param(
            a_machine(),
            (EAST, WEST),
            {"findings": {"east": VmFound(), "west": Unreachable("west refused")}, "strict_search": True},
            PlacementReason.CLUSTERS_SILENT,
            f"VM vm-my-vm exists in east, and may exist in a cluster that is unreachable (west refused). {REMEDY}",
            id="a silent one, where search is strict",
        ),
        pytest.param(
            a_machine(strategy="roulette"),
            (EAST, WEST),
            {"findings": NOWHERE},
            PlacementReason.UNKNOWN_STRATEGY,
            f"placement strategy roulette does not exist: use one of {', '.join(STRATEGY_NAMES)}",
            id="an unknown strategy",
        ),
        pytest.param(
            a_machine(),
            (a_cluster("east", schedulable=False), a_cluster("west", unreachable="refused")),
            {"findings": NOWHERE, "strategy": "round-robin"},
            PlacementReason.NO_ROOM,
            "none of east, west is schedulable and reachable, and has KubeVirt and valid credentials",
            id="nobody who takes new ones",
        ),
        pytest.param(
            a_machine(),
            (EAST, WEST),
            {"findings": {"east": KubeVirtMissing(), "west": KubeVirtMissing()}, "strategy": "round-robin"},
            PlacementReason.NO_ROOM,
            "none of east, west is schedulable and reachable, and has KubeVirt and valid credentials; "
            "KubeVirt is not installed in east, west",
            id="nobody who has KubeVirt",
        ),
    ],
)
def test_decide_blocks_machine(
    machine: Machine, clusters: tuple[MemberCluster, ...], view: dict[str, Any], reason: PlacementReason, text: str
) -> None:
    assert decide(a_view(machine, *clusters, **view)).outcome == Blocked(reason, text)


def test_decide_shows_what_is_wrong_with_a_selector() -> None:
    outcome = decide(a_view(a_machine(selector="region=="), EAST, WEST)).outcome
    assert isinstance(outcome, Chosen | Blocked)
    outcome = decide(a_view(a_machine(selector="region in"), EAST, WEST)).outcome
    assert isinstance(outcome, Blocked)
    assert outcome.reason is PlacementReason.BAD_SELECTOR
    assert "'region in' is not a condition on a label" in outcome.message


def test_decide_asks_only_the_candidates() -> None:
    assert decide(a_view(a_machine(), EAST, WEST)).outcome == Ask(("east", "west"))
    assert decide(a_view(a_machine(), EAST, WEST, findings={"east": VmAbsent()})).outcome == Ask(("west",))
    assert decide(a_view(a_machine(selector="region=west"), EAST, WEST, SOUTH)).outcome == Ask(("south", "west"))


def test_decide_keeps_machine_on_cordoned_cluster() -> None:
    cordoned = a_cluster("east", schedulable=False)
    outcome = decide(a_view(a_machine(), cordoned, WEST, findings={"east": VmFound(), "west": VmAbsent()})).outcome
    assert outcome == Chosen("east", "VM vm-my-vm exists there")


CORDONED = a_cluster("east", schedulable=False)


@pytest.mark.parametrize(
    ("machine", "clusters", "rules", "though"),
    [
        pytest.param(a_machine(), (CORDONED,), {}, "it is the only cluster", id="the only one"),
        pytest.param(
            a_machine(),
            (CORDONED, WEST),
            {"default_config": "east"},
            "DEFAULT_KUBEVIRT_CONFIG is east",
            id="the default",
        ),
        pytest.param(
            a_machine(),
            (a_cluster("east", schedulable=False, default=True), WEST),
            {},
            "its KubevirtConfig has spec.default: true",
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
def test_decide_gives_no_new_machine_to_cordoned_cluster(
    machine: Machine, clusters: tuple[MemberCluster, ...], rules: dict[str, Any], though: str
) -> None:
    outcome = decide(a_view(machine, *clusters, **rules)).outcome
    assert outcome == Blocked(PlacementReason.NO_ROOM, cordoned("east", though))


def test_decide_lets_machine_name_cordoned_cluster() -> None:
    assert decide(a_view(a_machine(config="east"), CORDONED)).outcome == Chosen("east", "its annotation names east")


def test_decide_keeps_unreadable_config_as_candidate() -> None:
    unreadable = MemberCluster("bad", None, unusable=NO_SECRET)
    machine = a_machine(selector="region=west")
    assert decide(a_view(machine, EAST, WEST, unreadable)).outcome == Ask(("bad", "west"))
    assert decide(a_view(machine, EAST, unreadable)).outcome == Blocked(NO_SECRET.reason, NO_SECRET.message)


@pytest.mark.parametrize(
    "machine",
    [
        pytest.param(a_machine(config="a\n\x1b[31m" + "b" * 1000), id="its annotation"),
        pytest.param(a_machine(selector="a in\n\x1b[31m" + "b" * 1000), id="its selector"),
        pytest.param(a_machine(selector="a" + " " * 200_000 + "!"), id="a selector that takes minutes to read"),
        pytest.param(a_machine(strategy="a\n\x1b[31m" + "b" * 1000), id="its strategy"),
    ],
)
def test_decide_message_is_one_bounded_line(machine: Machine) -> None:
    outcome = decide(a_view(machine, EAST, WEST, findings=NOWHERE)).outcome
    assert isinstance(outcome, Blocked)
    assert outcome.message.isprintable()
    assert len(outcome.message) < 500


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
def test_machine_is_ours_by_provider(provider: str, config: str, ours: bool) -> None:
    assert a_machine(provider=provider, provider_config=config).is_ours is ours


def test_trace_shows_the_whole_chain_of_an_ambiguous_machine() -> None:
    checks = trace(decide(a_view(a_machine(), EAST, WEST, findings=NOWHERE)))
    assert [one.title for one in checks] == [rule.title for rule in RULES]
    assert [one.result for one in checks] == ["not reached", "pass"] + ["not reached"] * 6 + ["fail"]
    assert [one.decided for one in checks] == [False] * 8 + [True]
    assert checks[2].reason == "No cluster-selector annotation"


def test_trace_ends_at_the_rule_that_decided() -> None:
    machine = a_machine(selector="region=west")
    checks = trace(decide(a_view(machine, EAST, WEST, SOUTH, default_config="south")))
    results = [(one.title, one.result, one.decided) for one in checks]
    assert results == [
        ("Cluster named by annotation", "not reached", False),
        ("No freeze", "pass", False),
        ("Cluster selector", "pass", False),
        ("Environment default", "pass", True),
        ("Default KubevirtConfig", "not reached", False),
        ("Only one cluster", "not reached", False),
        ("VM already exists", "not reached", False),
        ("Placement strategy", "not reached", False),
        ("Unambiguous", "not reached", False),
    ]
