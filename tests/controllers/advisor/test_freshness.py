from tests.runtime.clocks import ManualClock
from virt_steward.controllers.advisor.observe import PATIENCE, OwnWrites
from virt_steward.objects.identity import Key, Kind, Ref

REF = Ref(Kind("", "ConfigMap"), Key("here", "one"))


def test_a_cache_is_behind_until_it_shows_what_was_written() -> None:
    freshness = OwnWrites(ManualClock())
    assert not freshness.is_behind(REF, "1")
    freshness.expect(REF, "10")
    assert freshness.is_behind(REF, "9")
    assert freshness.is_behind(REF, None)  # created, and not seen yet
    assert not freshness.is_behind(REF, "10")
    assert not freshness.is_behind(REF, None)  # seen, and deleted by somebody since


async def test_what_was_deleted_before_it_was_seen_is_not_waited_for_for_ever() -> None:
    clock = ManualClock()
    freshness = OwnWrites(clock)
    freshness.expect(REF, "10")
    await clock.advance(PATIENCE - 1)
    assert freshness.is_behind(REF, None)
    await clock.advance(1)
    assert not freshness.is_behind(REF, None)
