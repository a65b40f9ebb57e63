"""The page on overrides names all of them, and its examples mean what it says."""

import re
from pathlib import Path

import yaml

from virt_steward.controllers.autopilot import REPORTER, annotation_keys
from virt_steward.controllers.autopilot.overrides import exclusions, mask
from virt_steward.controllers.autopilot.overrides.expiry import EXPIRING
from virt_steward.controllers.autopilot.overrides.patch import Patched, patched

PAGE = (Path(__file__).parents[3] / "docs" / "howto" / "override-the-autopilot.md").read_text()


def examples() -> dict[str, str]:
    """The annotations in its blocks of YAML."""
    blocks = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    return {name: text for block in blocks for name, text in yaml.safe_load(block)["metadata"]["annotations"].items()}


def test_howto_names_every_annotation() -> None:
    texts = {text for text in vars(annotation_keys).values() if isinstance(text, str)}
    names = {text.removeprefix(annotation_keys.PREFIX) for text in texts if text.startswith(annotation_keys.PREFIX)} - {
        ""
    }
    assert len(names) >= 9
    assert [name for name in names if f"`{name}`" not in PAGE] == []
    assert f"`{annotation_keys.GOVERNED_BY}`" in PAGE


def test_howto_examples_are_valid() -> None:
    given = examples()
    rules = exclusions.parse(given[annotation_keys.EXCLUDED])
    assert isinstance(rules, exclusions.Exclusions)
    assert rules.excludes("MachineConfig", "", "90-worker-swap-online")
    wanted = {"kind": "KubeDescheduler", "metadata": {"name": "cluster"}, "spec": {"deschedulingIntervalSeconds": 60}}
    changed = patched(wanted, given[annotation_keys.PATCH])
    assert isinstance(changed, Patched)
    assert changed.obj["spec"] == {"deschedulingIntervalSeconds": 1800}
    [pointers] = re.findall(f"{annotation_keys.IGNORED}=(.*)", PAGE)
    assert [mask.parse(pointers).bad, len(mask.parse(pointers).pointers)] == [(), 2]


def test_howto_selects_events_by_their_reporter() -> None:
    assert re.findall("reportingComponent=([a-z-]+)", PAGE) == [REPORTER]


def test_howto_lists_expiring_overrides_first() -> None:
    rows = re.findall(r"^\| `([a-z-]+)` \|", PAGE.split("## On an object")[1], re.MULTILINE)
    ends = rows.index(annotation_keys.UNTIL.removeprefix(annotation_keys.PREFIX))
    assert sorted(rows[:ends]) == sorted(name.removeprefix(annotation_keys.PREFIX) for name in EXPIRING)
