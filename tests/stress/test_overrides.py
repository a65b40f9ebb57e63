"""Ten thousand annotations, and hundreds of masks on objects that several managers have written."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.controllers.autopilot.overrides import garbage
from tests.controllers.autopilot.overrides.conftest import contraptions
from tests.controllers.autopilot.overrides.contraptions import on_a_server
from tests.controllers.autopilot.overrides.masks import a_scene, edits_survive, masked_values_stay
from virt_steward.kube.client import Client

__all__ = ["contraptions"]  # a fixture

EACH = 2500

CHECKS: dict[str, tuple[st.SearchStrategy[Any], Callable[..., None]]] = {
    "autopilot": (st.tuples(garbage.scopes), garbage.scope_is_told),
    "disabled-resources": (st.tuples(garbage.exclusion_rules), garbage.exclusions_are_told),
    "patch": (st.tuples(garbage.intents, garbage.patches), garbage.patch_spares_what_is_protected),
    "ignore-fields": (garbage.masked_objects(), garbage.mask_sends_no_other_value),
}


@pytest.mark.parametrize("annotation", CHECKS)
def test_overrides_with_random_values_are_safe_and_explained(annotation: str) -> None:
    texts, holds = CHECKS[annotation]
    seen = 0

    @settings(
        max_examples=EACH,
        deadline=None,
        database=None,
        phases=(Phase.generate,),
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(texts)
    def check(arguments: tuple[Any, ...]) -> None:
        nonlocal seen
        seen += 1
        holds(*arguments)

    check()
    print(f"\n{annotation}: {seen} values tried")
    assert seen >= EACH


@on_a_server(examples=500)
@given(data=st.data())
async def test_ignored_fields_keep_live_values(admin: Client, contraptions: str, data: st.DataObject) -> None:
    await masked_values_stay(admin, await a_scene(admin, contraptions, data))


@on_a_server(examples=500)
@given(data=st.data())
async def test_ignored_fields_keep_later_edits(admin: Client, contraptions: str, data: st.DataObject) -> None:
    await edits_survive(admin, await a_scene(admin, contraptions, data), data)
