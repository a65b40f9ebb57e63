"""The examples of the how-to about holding changes back."""

import re
import shlex

import msgspec

from tests.howtos import FOLDER
from virt_steward.apis.virtplatformconfig import VirtPlatformConfigSpec
from virt_steward.holds.freezes import FreezeSettings, parse_freeze
from virt_steward.holds.gate_settings import READY_MADE, decode_gates

PAGE = (FOLDER / "hold-changes-back.md").read_text()
BLOCKS = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)


def test_howto_defines_valid_gates() -> None:
    [file] = [block for block in BLOCKS if "\nrequired:" in block]
    assert set(decode_gates(file.encode()).gates) == {"etcd", "no-migrations", "few-errors"}
    assert all(f"`{name}`" in PAGE for name in READY_MADE)


def test_howto_shows_valid_fields_of_objects() -> None:
    for block in (one for one in BLOCKS if "freeze:" in one or "gates: [" in one):
        spec = msgspec.yaml.decode(block)["spec"]
        msgspec.convert({"profile": "load-aware-rebalancing", **spec}, VirtPlatformConfigSpec)


def test_howto_creates_valid_freezes() -> None:
    commands = re.findall(r"kubectl create configmap virt-steward-freeze[^`]*", PAGE)
    assert len(commands) == 2
    for command in commands:
        words = shlex.split(command.replace("\\\n", " "))
        data = dict(word.removeprefix("--from-literal=").split("=", 1) for word in words if "--from-literal=" in word)
        assert not parse_freeze(msgspec.convert(data, FreezeSettings), "it").problem
    assert all(f"`{field.encode_name}`" in PAGE for field in msgspec.structs.fields(FreezeSettings))
