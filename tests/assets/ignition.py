"""Ignition configurations, read as strictly as a node reads them."""

import gzip
from base64 import b64decode
from configparser import ConfigParser
from dataclasses import dataclass
from typing import Any

SECTIONS = {".service": {"Unit", "Service", "Install"}, ".slice": {"Slice"}}


@dataclass(frozen=True, slots=True)
class File:
    text: str
    mode: int
    raw: bytes
    """As it travels: compressed, if it is."""


def files_of(config: dict[str, Any]) -> dict[str, File]:
    entries = config.get("storage", {}).get("files", [])
    found = {entry["path"]: _file(**entry) for entry in entries}
    assert len(found) == len(entries), "a path is there twice"
    assert all(path.startswith("/") for path in found)
    return found


def _file(*, path: str, mode: int, overwrite: bool, contents: dict[str, str]) -> File:
    assert overwrite, f"{path} may be there already"
    assert contents.keys() <= {"source", "compression"}
    head, _, body = contents["source"].partition(",")
    assert head == "data:;base64"
    raw = b64decode(body, validate=True)
    return File((gzip.decompress(raw) if contents.get("compression") == "gzip" else raw).decode(), mode, raw)


def units_of(config: dict[str, Any]) -> dict[str, ConfigParser]:
    """Units and drop-ins by name, as in `system.slice.d/50-x.conf`."""
    entries = config.get("systemd", {}).get("units", [])
    found: dict[str, ConfigParser] = {}
    for entry in entries:
        assert entry.keys() in ({"name", "enabled", "contents"}, {"name", "dropins"})
        if "contents" in entry:
            assert entry["enabled"] is True
            found[entry["name"]] = _unit(entry["name"], entry["contents"])
        for dropin in entry.get("dropins", []):
            assert dropin.keys() == {"name", "contents"}
            assert dropin["name"].endswith(".conf")
            found[f"{entry['name']}.d/{dropin['name']}"] = _unit(entry["name"], dropin["contents"])
    assert len({entry["name"] for entry in entries}) == len(entries), "a unit is there twice"
    return found


def _unit(name: str, text: str) -> ConfigParser:
    unit = ConfigParser(strict=False, interpolation=None, delimiters=("=",), comment_prefixes=("#", ";"))
    unit.optionxform = str  # type: ignore[assignment, method-assign]  # as the library documents it
    unit.read_string(text)
    assert set(unit.sections()) == SECTIONS[name[name.rindex(".") :]]
    return unit
