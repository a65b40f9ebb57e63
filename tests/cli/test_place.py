"""What the command line tells of machines and clusters."""

import json
from collections.abc import AsyncIterator

import pytest

from tests.audit import AuditLog
from tests.cli.commands import Ended, steward
from tests.controllers.placement.scene import Scene
from tests.machines import the_machine
from virt_steward.controllers.placement.act import record
from virt_steward.controllers.placement.observation import Machine
from virt_steward.controllers.placement.verdicts import Chosen
from virt_steward.kube.client import Client, Reader
from virt_steward_demo.local.controlplane import ControlPlane

ASSUMED = (
    "Assumed: strategy round-robin, default config none, search found, VM name vm-{machine}; "
    "the controller's settings may differ"
)


@pytest.fixture
async def scene(admin: Client, control_plane: ControlPlane, namespace: str) -> AsyncIterator[Scene]:
    """Two clusters, neither of which has a VM."""
    scene = Scene(admin, control_plane, namespace, namespace)
    await scene.install_crds()
    await scene.clear()  # other tests share this cluster
    await scene.join("east", "west")
    yield scene
    await scene.clear()


async def test_explain_machine_shows_checks_scores_and_clusters(scene: Scene, control_plane: ControlPlane) -> None:
    await scene.machine("old", annotations={"vitistack.io/kubevirt-config": "east"})
    await scene.machine("web")
    ended = await steward(
        "explain",
        "machine",
        f"{scene.namespace}/web",
        kubeconfig=control_plane.kubeconfig,
        PLACEMENT_STRATEGY="round-robin",
    )
    assert (ended.code, ended.stderr) == (0, "")
    assert ended.stdout.splitlines() == [
        f"Machine {scene.namespace}/web goes to west: round-robin: number 1 in turn",
        "  \N{EN DASH} Cluster named by annotation: No vitistack.io/kubevirt-config annotation",
        "  \N{CHECK MARK} No freeze: No freeze holds the placement",
        "  \N{EN DASH} Cluster selector: No cluster-selector annotation",
        "  \N{EN DASH} Environment default: DEFAULT_KUBEVIRT_CONFIG is not set",
        "  \N{EN DASH} Default KubevirtConfig: No KubevirtConfig has spec.default: true",
        "  \N{EN DASH} Only one cluster: 2 clusters are available",
        "  \N{EN DASH} VM already exists: VM vm-web does not exist in east, west",
        "  ✓ Placement strategy: round-robin: number 1 in turn. Decided here",
        "  \N{EN DASH} Unambiguous: not reached",
        "",
        "CLUSTER  SCORE",
        "west     number 1 in turn",
        "east     number 2 in turn",
        "",
        "CLUSTER  MACHINES  VM         STATE",
        "east     1         not there  ready",
        "west     0         not there  ready",
        "",
        ASSUMED,
    ]


async def test_explain_machine_shows_recorded_reason(scene: Scene, control_plane: ControlPlane) -> None:
    await scene.machine("web")
    reader = Reader(scene.client.connection, scene.client.discovery)
    machine = await reader.get(the_machine(scene.namespace, "web"), Machine)
    await record(scene.client, machine, Chosen("east", "round-robin: number 1 in turn"))
    ended = await steward(
        "explain",
        "machine",
        f"{scene.namespace}/web",
        "--placement-strategy=spread",
        "--search=strict",
        kubeconfig=control_plane.kubeconfig,
        DEFAULT_KUBEVIRT_CONFIG="west",
    )
    lines = ended.stdout.splitlines()
    assert lines[:3] == [
        f"Machine {scene.namespace}/web is placed on east",
        "  reason at that time: round-robin: number 1 in turn",
        "  ✓ Cluster named by annotation: its annotation names east. Decided here",
    ]
    assert lines[-1] == (
        "Assumed: strategy spread over topology.kubernetes.io/region, default config west, search strict, "
        "VM name vm-{machine}; the controller's settings may differ"
    )


async def test_explain_machine_prints_json(scene: Scene, control_plane: ControlPlane) -> None:
    await scene.machine("web")
    ended = await steward(
        "explain",
        "machine",
        f"{scene.namespace}/web",
        "-o",
        "json",
        kubeconfig=control_plane.kubeconfig,
        DEFAULT_KUBEVIRT_CONFIG="west",
    )
    found = json.loads(ended.stdout)
    assert (found["cluster"], found["recorded"], found["reason"]) == ("west", None, None)
    assert found["assumed"]["defaultConfig"] == "west"
    [decided] = [one for one in found["checks"] if one["decided"]]
    assert decided == {
        "title": "Environment default",
        "result": "pass",
        "reason": "DEFAULT_KUBEVIRT_CONFIG is west",
        "decided": True,
    }


async def test_place_previews_all_machines_and_writes_nothing(
    scene: Scene, control_plane: ControlPlane, audit_log: AuditLog
) -> None:
    for name in ("a", "b", "c"):
        await scene.machine(name)
    mark = audit_log.mark()
    ended = await steward(
        "place", "--dry-run", "--all", "--placement-strategy=round-robin", kubeconfig=control_plane.kubeconfig
    )
    assert ended.stdout.splitlines() == [
        f"Machine {scene.namespace}/a goes to east: round-robin: number 1 in turn",
        f"Machine {scene.namespace}/b goes to west: round-robin: number 1 in turn",
        f"Machine {scene.namespace}/c goes to east: round-robin: number 1 in turn",
        ASSUMED,
    ]
    assert {one.verb for one in audit_log.since(mark) if "virt-steward" in one.user_agent} == {"get", "list", "watch"}
    assert [await scene.cluster_of(name) for name in ("a", "b", "c")] == ["", "", ""]


async def test_place_says_why_machine_cannot_be_placed(scene: Scene, control_plane: ControlPlane) -> None:
    await scene.machine("web")
    ended = await steward("place", "--dry-run", f"{scene.namespace}/web", kubeconfig=control_plane.kubeconfig)
    assert ended.stdout.startswith(f"Machine {scene.namespace}/web is not placed: machine {scene.namespace}/web has no")
    assert ended.code == 0


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        pytest.param(("place", "a/b"), "place only previews: add --dry-run", id="place-for-real"),
        pytest.param(("place", "--dry-run"), "one Machine, as NAMESPACE/NAME, or --all", id="place-nothing"),
        pytest.param(("place", "--dry-run", "--all", "a/b"), "or --all", id="place-one-and-all"),
        pytest.param(
            ("explain", "machine", "a/b", "--placement-strategy=best"),
            "--placement-strategy must be one of none, round-robin, ",
            id="strategy",
        ),
        pytest.param(("explain", "machine", "a/b", "--vm-name=VM"), "is not a valid template", id="template"),
        pytest.param(("run", "--vm-name=vm-{machine}-{0}"), "is not a valid template", id="template-with-a-stranger"),
        pytest.param(("run", "--search=maybe"), "'maybe' is not one of", id="search"),
        pytest.param(("run", "--cluster-timeout=20"), "longer than --search-deadline 10 s", id="timeout-over-deadline"),
        pytest.param(("run", "--cluster-timeout=nan"), "is not a duration", id="timeout-that-is-no-number"),
        pytest.param(("run", "--probe-interval=0"), "--probe-interval", id="no-pause-between-probes"),
        pytest.param(("run", "--spread-label="), "--spread-label is empty", id="spread-over-nothing"),
    ],
)
async def test_place_and_explain_report_wrong_input_in_one_line(
    control_plane: ControlPlane, arguments: tuple[str, ...], complaint: str
) -> None:
    ended = await steward(*arguments, kubeconfig=control_plane.kubeconfig)
    assert ended.code != 0
    assert ended.stdout == ""
    assert complaint in ended.stderr
    assert ended.stderr.count("\n") == 1


async def test_explain_machine_that_is_missing_lists_existing(scene: Scene, control_plane: ControlPlane) -> None:
    await scene.machine("web")
    ended = await steward("explain", "machine", f"{scene.namespace}/wbe", kubeconfig=control_plane.kubeconfig)
    assert_complaint(ended, f"Machine {scene.namespace}/wbe not found; existing in that namespace: web")


def assert_complaint(ended: Ended, sentence: str) -> None:
    assert (ended.code, ended.stdout, ended.stderr) == (1, "", f"virt-steward: {sentence}\n")


async def test_status_has_section_per_controller_and_row_per_cluster(scene: Scene, control_plane: ControlPlane) -> None:
    status = {"phase": "Unreachable", "machines": 3, "version": "v1.36.3", "conditions": [a_silence()]}
    await scene.client.merge_patch(scene.ref("east"), {"status": status}, subresource="status")
    await scene.change("west", schedulable=False)
    text = await steward("status", kubeconfig=control_plane.kubeconfig)
    data = await steward("status", "-o", "json", kubeconfig=control_plane.kubeconfig)
    assert (text.code, text.stderr) == (2, "")  # the cluster that does not answer needs a person
    lines = text.stdout.splitlines()
    rows = lines[lines.index(next(line for line in lines if line.startswith("  clusters: 2;"))) + 1 :][:3]
    assert rows == [
        "    CLUSTER  STATE                       MACHINES  VERSION  MESSAGE",
        "    east     Unreachable                 3         v1.36.3  cluster east does not answer",
        "    west     not observed yet, cordoned  0         unknown",
    ]
    assert any(line.startswith("approver: ") for line in lines)
    clusters = json.loads(data.stdout)["controllers"][-1]["objects"]["clusters"]
    assert [(one["cluster"], one["machines"]) for one in clusters] == [("east", 3), ("west", 0)]


def a_silence() -> dict[str, str]:
    return {
        "type": "Reachable",
        "status": "False",
        "reason": "NoAnswer",
        "message": "cluster east does not answer",
        "lastTransitionTime": "2030-01-01T00:00:00Z",
    }
