"""The decision tree, row by row, with five clusters: whom each machine gets, what is written, and who is asked."""

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest

from tests.eventually import eventually
from tests.machines import the_machine
from tests.stress.placement_fleet.clusters import FIVE, Fleet
from tests.stress.placement_fleet.conftest import Start, Written
from virt_steward.controllers.placement.observation import BECAUSE_ANNOTATION, CONFIG_ANNOTATION
from virt_steward.ssa import managers

NO_CONFIGS = "machine {} has no KubevirtConfig reference and no KubevirtConfigs are available"
AMBIGUOUS = (
    "machine {} has no KubevirtConfig reference and {} configs are available - cannot determine placement. "
    "Please set annotation 'vitistack.io/kubevirt-config' or DEFAULT_KUBEVIRT_CONFIG env var"
)
SELECTOR = "vitistack.io/cluster-selector"
STRATEGY = "vitistack.io/placement-strategy"


@dataclass(frozen=True, slots=True)
class Choice:
    """Clusters and a machine, and what should come of it."""

    configs: tuple[str, ...]
    chosen: str
    because: str = ""
    """Empty: it was chosen by others, and nothing is written."""
    machine: dict[str, str] = field(default_factory=dict)
    """Its annotations."""
    default: str = ""
    """DEFAULT_KUBEVIRT_CONFIG."""
    options: tuple[str, ...] = ()
    specs: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Of configs that say more than where they are."""
    vm_on: str = ""
    searched: tuple[str, ...] = ()
    """Who is asked for the VM."""
    name: str = "my-vm"


CHOICES = [
    pytest.param(Choice(FIVE, "c", machine={CONFIG_ANNOTATION: "c"}), id="1-its-annotation"),
    pytest.param(
        Choice(FIVE, "c", machine={CONFIG_ANNOTATION: "c"}, default="a", vm_on="b", specs={"d": {"default": True}}),
        id="1-its-annotation-whatever-else-is-said",
    ),
    pytest.param(Choice(FIVE, "b", "DEFAULT_KUBEVIRT_CONFIG is b", default="b"), id="2-the-environment-default"),
    pytest.param(
        Choice(FIVE, "b", "DEFAULT_KUBEVIRT_CONFIG is b", default="b", vm_on="d"),
        id="2-the-environment-default-before-any-search",
    ),
    pytest.param(
        Choice(FIVE, "b", "DEFAULT_KUBEVIRT_CONFIG is b", default="b", machine={CONFIG_ANNOTATION: ""}),
        id="2-the-environment-default-where-the-annotation-is-empty",
    ),
    pytest.param(
        Choice(FIVE, "b", "DEFAULT_KUBEVIRT_CONFIG is b", default="b", specs={"d": {"default": True}}),
        id="2-the-environment-default-before-the-flag",
    ),
    pytest.param(Choice(("a",), "a", "it is the only cluster"), id="3-the-only-one-without-a-search"),
    pytest.param(
        Choice(FIVE, "d", "VM vm-my-vm exists there", vm_on="d", searched=FIVE), id="4-the-one-of-five-that-has-its-vm"
    ),
    pytest.param(Choice(("main-cluster",), "main-cluster", "it is the only cluster"), id="pattern-1-single-cluster"),
    pytest.param(
        Choice(
            ("production-east", "production-west"),
            "production-east",
            "DEFAULT_KUBEVIRT_CONFIG is production-east",
            default="production-east",
            name="app-server",
        ),
        id="pattern-2-the-default",
    ),
    pytest.param(
        Choice(
            ("production-east", "production-west"),
            "production-west",
            machine={CONFIG_ANNOTATION: "production-west"},
            default="production-east",
            name="west-app",
        ),
        id="pattern-2-the-override",
    ),
    pytest.param(
        Choice(
            ("cluster-a", "cluster-b"),
            "cluster-b",
            "VM vm-legacy-app exists there",
            vm_on="cluster-b",
            searched=("cluster-a", "cluster-b"),
            name="legacy-app",
        ),
        id="pattern-3-adoption",
    ),
    pytest.param(
        Choice(FIVE, "e", "its KubevirtConfig has spec.default: true", specs={"e": {"default": True}}),
        id="later-1-the-default-flag",
    ),
    pytest.param(
        Choice(
            FIVE, "a", "round-robin: number 1 in turn", options=("--placement-strategy=round-robin",), searched=FIVE
        ),
        id="later-2-round-robin",
    ),
    pytest.param(
        Choice(FIVE, "a", "least-loaded: 0 machines", machine={STRATEGY: "least-loaded"}, searched=FIVE),
        id="later-2-least-loaded-as-the-machine-wishes",
    ),
    pytest.param(
        Choice(
            FIVE,
            "d",
            "weight: weight 300, 0 machines",
            options=("--placement-strategy=weight",),
            specs={"d": {"weight": 300}},
            searched=FIVE,
        ),
        id="later-2-the-cheapest",
    ),
    pytest.param(
        Choice(
            FIVE,
            "a",
            "spread: region=north has 0 machines, 0 of them here",
            options=("--placement-strategy=spread", "--spread-label=region"),
            specs={name: {"labels": {"region": "north"}} for name in FIVE},
            searched=FIVE,
        ),
        id="later-2-evenly-over-regions",
    ),
    pytest.param(
        Choice(
            FIVE,
            "c",
            "it is the only one that matches region=us-east",
            machine={SELECTOR: "region=us-east"},
            specs={"c": {"labels": {"region": "us-east"}}},
        ),
        id="later-3-the-only-one-that-it-selects",
    ),
    pytest.param(
        Choice(
            FIVE,
            "d",
            "VM vm-my-vm exists there",
            machine={SELECTOR: "region in (us-east)"},
            specs={name: {"labels": {"region": "us-east"}} for name in ("c", "d")},
            vm_on="d",
            searched=("c", "d"),
        ),
        id="later-3-searched-among-those-that-it-selects",
    ),
    pytest.param(
        Choice(
            FIVE,
            "d",
            "its KubevirtConfig has spec.default: true",
            default="a",
            machine={SELECTOR: "region"},
            specs={"c": {"labels": {"region": "x"}}, "d": {"labels": {"region": "y"}, "default": True}},
        ),
        id="later-3-a-default-that-it-does-not-select-is-passed-over",
    ),
]


@pytest.mark.parametrize("choice", CHOICES)
async def test_placement_chooses_cluster(
    choice: Choice,
    fleet: Fleet,
    start: Start,
    written: Written,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, member in zip(choice.configs, fleet.members, strict=False):
        await fleet.connect(name, member, **choice.specs.get(name, {}))
    if choice.vm_on:
        await fleet.run_vm(choice.vm_on, f"vm-{choice.name}")
    await fleet.machine(choice.name, annotations=choice.machine)
    monkeypatch.setenv("DEFAULT_KUBEVIRT_CONFIG", choice.default)
    with start(*choice.options) as process:
        assert await eventually(partial(fleet.counts, choice.chosen, 1), within=30)
        if choice.because:
            note = f"placed on cluster {choice.chosen}: {choice.because}"
            assert await eventually(partial(fleet.has_note, choice.name, note))
        assert process.troubles == []
    assert await fleet.cluster_of(choice.name) == choice.chosen
    assert await fleet.condition(choice.name) == {}
    assert fleet.searched() == set(choice.searched)
    writes = written(choice.name)
    if choice.because:
        assert set(writes) == {""}
        assert await annotation_owner(fleet, choice.name) == managers.PLACEMENT.name
    else:
        assert writes == []
        assert await fleet.events(choice.name) == []


async def annotation_owner(fleet: Fleet, machine: str) -> str:
    metadata = (await fleet.client.get(the_machine(fleet.namespace, machine)))["metadata"]
    owned = {"f:metadata": {"f:annotations": {f"f:{key}": {} for key in (CONFIG_ANNOTATION, BECAUSE_ANNOTATION)}}}
    return next(one["manager"] for one in metadata["managedFields"] if one["fieldsV1"] == owned)


@pytest.mark.parametrize("number", [2, 3, 5])
async def test_placement_ambiguity_message_is_exact(number: int, fleet: Fleet, start: Start) -> None:
    await fleet.connect_all(*FIVE[:number])
    await fleet.machine("my-vm")
    await assert_waits(fleet, start, "AmbiguousPlacement", AMBIGUOUS.format(f"{fleet.namespace}/my-vm", number))
    assert fleet.searched() == set(FIVE[:number])


async def test_placement_no_configs_message_is_exact(fleet: Fleet, start: Start) -> None:
    await fleet.machine("my-vm")
    await assert_waits(fleet, start, "NoConfigs", NO_CONFIGS.format(f"{fleet.namespace}/my-vm"))


async def assert_waits(fleet: Fleet, start: Start, reason: str, text: str, *options: str) -> None:
    with start(*options):
        assert await eventually(partial(fleet.waits_for, "my-vm", reason), within=30)
        assert await eventually(partial(fleet.has_event, "my-vm", reason, text))
    condition = await fleet.condition("my-vm")
    assert (condition["status"], condition["message"]) == ("False", text)
    assert await fleet.cluster_of("my-vm") == ""
