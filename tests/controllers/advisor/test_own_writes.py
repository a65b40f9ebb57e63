from tests.runtime.clocks import ManualClock
from virt_steward.controllers.advisor.observe import PATIENCE, OwnWrites
from virt_steward.objects.identity import Key, Kind, Ref

REF = Ref(Kind("", "ConfigMap"), Key("here", "one"))


def test_own_write_is_awaited_in_cache() -> None:
    freshness = OwnWrites(ManualClock())
    assert not freshness.is_behind(REF, "1")
    freshness.expect(REF, "10")
    assert freshness.is_behind(REF, "9")
    assert freshness.is_behind(REF, None)  # created, and not seen yet
    assert not freshness.is_behind(REF, "10")
    assert not freshness.is_behind(REF, None)  # seen, and deleted by somebody since


async def test_own_write_is_awaited_only_so_long() -> None:
    clock = ManualClock()
    freshness = OwnWrites(clock)
    freshness.expect(REF, "10")
    await clock.advance(PATIENCE - 1)
    assert freshness.is_behind(REF, None)
    await clock.advance(1)
    assert not freshness.is_behind(REF, None)
