"""The filters of templates: pure functions with the same output on every machine."""

from __future__ import annotations

import re
import struct
import zlib
from base64 import b64encode as _b64encode
from typing import Any

from virt_steward.catalog.yamlread import BadYaml, document
from virt_steward.objects.canonical import canonical
from virt_steward.objects.paths import Pointer
from virt_steward.objects.paths import get as _get
from virt_steward.objects.paths import has as _has
from virt_steward.objects.yamltext import yaml_text

_NOT_IN_YAML = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")  # forbidden, or read as an end of the line
_GZIP_HEADER = b"\x1f\x8b\x08\0\0\0\0\0\x02\xff"  # no time and no system in it
_LONGEST_BLOCK = 0xFFFF


def to_yaml(value: Any) -> str:
    """Without a newline at its end, so that the template decides what follows."""
    return yaml_text(value).removesuffix("\n").removesuffix("\n...")


def from_yaml(text: str) -> Any:
    return document(text)


def to_json(value: Any) -> str:
    """Also good YAML, on one line."""
    return _NOT_IN_YAML.sub(lambda found: f"\\u{ord(found[0]):04x}", canonical(value).decode())


def quote(value: Any) -> str:
    """A scalar that YAML reads as this text, whatever is in it."""
    return to_json(str(value))


def b64encode(data: str | bytes) -> str:
    return _b64encode(_bytes(data)).decode()


def gzipped(data: str | bytes) -> bytes:
    """Stored in blocks: each build of zlib compresses in its own way, and another byte would reboot every node."""
    raw = _bytes(data)
    blocks = [raw[start : start + _LONGEST_BLOCK] for start in range(0, len(raw), _LONGEST_BLOCK)] or [b""]
    body = b"".join(struct.pack("<BHH", 0, len(block), len(block) ^ 0xFFFF) + block for block in blocks[:-1])
    last = struct.pack("<BHH", 1, len(blocks[-1]), len(blocks[-1]) ^ 0xFFFF) + blocks[-1]
    return _GZIP_HEADER + body + last + struct.pack("<II", zlib.crc32(raw), len(raw) & 0xFFFFFFFF)


def data_url(data: str | bytes, *, gzip: bool = False) -> str:
    """Return the source of a file in Ignition."""
    return f"data:;base64,{b64encode(gzipped(data) if gzip else data)}"


def dig(value: Any, path: str, default: Any = None) -> Any:
    """Return the value at a JSON pointer; the default if it is absent or null."""
    pointer = Pointer.parse(path)
    found = _get(value, pointer) if _has(value, pointer) else None
    return default if found is None else found


def merged(base: Any, changes: Any) -> Any:
    """Merge two maps at every level; for other values the second wins."""
    if not isinstance(base, dict) or not isinstance(changes, dict):
        return changes
    return base | {key: merged(base[key], value) if key in base else value for key, value in changes.items()}


def merged_yaml(text: str, changes: dict[str, Any]) -> str:
    """Merge our changes into a user's YAML text; it is only appended to where possible, so that comments stay."""
    live = document(text) or {}
    if not isinstance(live, dict):
        raise BadYaml("not a map, so nothing can be added to it")
    wanted = merged(live, changes)
    if wanted == live:
        return text
    longer = f"{text.rstrip()}\n{yaml_text(changes)}".lstrip("\n")
    return longer if live.keys().isdisjoint(changes) and _reads_as(longer, wanted) else yaml_text(wanted)


FILTERS = {
    "to_yaml": to_yaml,
    "from_yaml": from_yaml,
    "to_json": to_json,
    "quote": quote,
    "b64encode": b64encode,
    "gzip": gzipped,
    "data_url": data_url,
    "dig": dig,
    "merged": merged,
    "merged_yaml": merged_yaml,
}


def _reads_as(text: str, wanted: Any) -> bool:
    try:
        return bool(document(text) == wanted)
    except BadYaml:
        return False


def _bytes(data: str | bytes) -> bytes:
    return data if isinstance(data, bytes) else data.encode()
