"""One round of a soak: everything is sampled, and the checker is content. `make soak` runs for hours."""

from pathlib import Path

from tests.chaos.faults import CONTROLLERS
from tests.chaos.site import a_judged_control_plane, a_site
from tests.soak.part import CLUSTER, OBJECTS, run_part
from tests.soak.sampling import ALLOWED


async def test_round_of_soak_is_green_and_samples_everything(tmp_path: Path) -> None:
    with a_judged_control_plane(tmp_path / "controlplane") as control_plane:
        async with a_site(control_plane, tmp_path) as site:
            result = await run_part(site, 1, 1.0, tmp_path / "processes", print)
    assert result.problems == []
    assert result.rounds == 1
    assert result.writes > 20, "too little happened to prove anything"
    sampled = {(one.who, one.quantity): min(sample.value for sample in one.samples) for one in result.judgements}
    assert sampled.keys() == {(CLUSTER, OBJECTS), *((who, what) for who in CONTROLLERS for what in ALLOWED)}
    assert all(sampled.values())
