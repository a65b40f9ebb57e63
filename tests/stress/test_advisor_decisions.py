"""The advisor's decisions on thousands of generated configs and cluster states."""

from hypothesis import HealthCheck, given, settings

from tests.controllers.advisor.specimens import observations
from tests.controllers.advisor.test_generated import check
from virt_steward.controllers.advisor.observation import AdvisorObservation


@settings(max_examples=5000, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(observations())
def test_advisor_steps_are_legal_for_5000_generated_configs(seen: AdvisorObservation) -> None:
    check(seen)
