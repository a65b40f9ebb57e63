"""Follows docs/howto/add-an-asset.md to the letter."""

import re
from pathlib import Path
from typing import get_args

import msgspec
import pytest
import yaml

from tests.controllers.autopilot.builders import an_observation, report
from virt_steward.catalog.asset import Declaration
from virt_steward.catalog.conditions import Condition
from virt_steward.catalog.filters import FILTERS
from virt_steward.catalog.load import Catalog, load
from virt_steward.catalog.offline import offline
from virt_steward.controllers.autopilot.asset_report import AssetStatus

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "add-an-asset.md"
BLOCK = re.compile(r"`([\w./ -]+)`(?: prints)?:\n\n```yaml\n(.*?)```", re.DOTALL)
FOLDERS = "scheduling/virt-priority"


@pytest.fixture(scope="module")
def blocks() -> dict[str, str]:
    return dict(BLOCK.findall(PAGE.read_text()))


@pytest.fixture
def catalog(tmp_path: Path, blocks: dict[str, str]) -> Catalog:
    for name, text in blocks.items():
        if name.startswith(FOLDERS):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
    return load(tmp_path)


def test_howto_renders_the_object_that_it_prints(catalog: Catalog, blocks: dict[str, str]) -> None:
    seen = offline(blocks["cluster.yaml"], catalog, {})
    line = report(catalog.assets[0], an_observation(seen.context, seen.served), catalog)
    (printed,) = (text for name, text in blocks.items() if name.startswith("virt-steward render"))
    assert line.object == yaml.safe_load(printed)


def test_howto_asset_needs_its_annotation(catalog: Catalog, blocks: dict[str, str]) -> None:
    without = blocks["cluster.yaml"].replace("enable-vm-priority", "enable-something-else")
    seen = offline(without, catalog, {})
    line = report(catalog.assets[0], an_observation(seen.context), catalog)
    assert (line.status, line.reason) == (AssetStatus.EXCLUDED, "Conditions not met")


def test_howto_names_every_key_condition_and_filter() -> None:
    keys = [field.encode_name for field in msgspec.structs.fields(Declaration)]
    types = [condition.__struct_config__.tag for condition in get_args(Condition)]
    text = PAGE.read_text()
    assert not [key for key in (*keys, *FILTERS) if f"`{key}" not in text]
    assert not [name for name in types if f"type: {name}" not in text]
