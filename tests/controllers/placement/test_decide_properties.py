from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.controllers.placement.builders import NO_SECRET, a_cluster, a_machine, a_view
from virt_steward.controllers.placement.decide import decide, trace
from virt_steward.controllers.placement.observation import (
    CapacityFree,
    KubeVirtMissing,
    MemberCluster,
    Unreachable,
    VmAbsent,
    VmFound,
)
from virt_steward.controllers.placement.rules import RULES
from virt_steward.controllers.placement.strategies import STRATEGIES
from virt_steward.controllers.placement.verdicts import Ask, Blocked, Chosen

clusters = st.lists(
    st.builds(
        a_cluster,
        st.sampled_from("abcd"),
        default=st.booleans(),
        schedulable=st.booleans(),
        unusable=st.sampled_from([None, NO_SECRET]),
        unreachable=st.sampled_from(["", "refused"]),
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
def test_decide_always_decides_and_chooses_only_usable_clusters(
    all_clusters: list[MemberCluster], findings: dict[str, Any], strategy: str, strict: bool
) -> None:
    observation = a_view(a_machine(), *all_clusters, findings=findings, strategy=strategy, strict_search=strict)
    decision = decide(observation)
    checks = trace(decision)
    assert [one.title for one in checks] == [rule.title for rule in RULES]
    assert [one.decided for one in checks].count(True) == 1
    by_name = {one.name: one for one in all_clusters}
    match decision.outcome:
        case Chosen(name):
            assert by_name[name].unusable is None
            holders = {one for one, finding in findings.items() if finding == VmFound() and one in by_name}
            if decision.rule.name in {"existing_vm", "configured"}:
                assert holders <= {name}
                assert all(one in findings for one in by_name)
            if decision.rule.name == "configured":
                assert by_name[name].schedulable
                assert findings[name] == VmAbsent()
                assert not any(isinstance(findings[one], Unreachable) for one in by_name)
        case Blocked(_, because):
            assert because
        case Ask(names):
            assert names
            assert not set(names) & set(findings)
