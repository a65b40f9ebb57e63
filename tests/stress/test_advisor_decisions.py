"""The advisor's decisions on thousands of generated configs and cluster states."""

from hypothesis import HealthCheck, given, settings

from tests.controllers.advisor.specimens import sights
from tests.controllers.advisor.test_generated import check
from virt_steward.controllers.advisor.observation import AdvisorObservation


@settings(max_examples=5000, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(sights())
def test_five_thousand_generated_configs_lead_to_legal_steps(seen: AdvisorObservation) -> None:
    check(seen)
