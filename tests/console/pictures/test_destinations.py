"""Where Machines went: each cluster with its Machines by state, and those without a cluster."""

from virt_steward.console.pages.placement import DESTINATIONS_SHOWN, MachineRow, destinations
from virt_steward.objects.identity import Key


def a_row(cluster: str, tone: str = "ok") -> MachineRow:
    return MachineRow(Key("team", "web"), cluster, "Placed", tone, "")


def test_destinations_count_machines_by_cluster_and_state() -> None:
    rows = [a_row("east"), a_row("east"), a_row("east", "warn"), a_row("", "warn"), a_row("", "info"), a_row("gone")]
    found = destinations(["west", "east"], rows)
    assert [(one.cluster, one.summary) for one in found] == [
        ("east", "3 Machines on east: 1 blocked, 2 placed"),
        ("gone", "1 Machine on gone: 1 placed"),
        ("west", "0 Machines on west"),
        ("", "2 Machines without a cluster: 1 blocked, 1 pending"),
    ]
    assert [group.slug for group in found[0].picture.groups] == ["blocked", "placed"]


def test_destinations_are_bounded() -> None:
    """The author of a Machine can name any cluster."""
    found = destinations([], [a_row("", "warn"), *(a_row(f"made-up-{number}") for number in range(1_000))])
    assert (len(found), found[-1].cluster) == (DESTINATIONS_SHOWN + 1, "")
