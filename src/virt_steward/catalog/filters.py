"""The filters of templates: pure functions with the same output on every machine.

A value enters the YAML of an object only through a typed filter, which writes it as one JSON value on one line. So no
value can add fields or lines, whatever it contains, and a value of another type is an error with its reason. For
example, `maxPods: {{ hco.value('/spec/maxPods') | integer }}` fails if somebody has set it to text with a newline.
"""

from __future__ import annotations

import re
import struct
import zlib
from base64 import b64encode as _b64encode
from typing import Any, TypeVar

from jinja2 import Undefined

from virt_steward.catalog.yamlread import BadYaml, document
from virt_steward.objects.canonical import canonical
from virt_steward.objects.paths import Pointer
from virt_steward.objects.paths import get as _get
from virt_steward.objects.paths import has as _has
from virt_steward.objects.yamltext import yaml_text
from virt_steward.platform.tls_profile import resolve_profile

_NOT_IN_YAML = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")  # forbidden, or read as an end of the line
_GZIP_HEADER = b"\x1f\x8b\x08\0\0\0\0\0\x02\xff"  # no time and no system in it
_LONGEST_BLOCK = 0xFFFF
_INT64 = range(-(2**63), 2**63)
_T = TypeVar("_T")
MOST_NODES = 2000
"""Of YAML that others wrote: more would block the process for too long."""


class YamlValue(str):
    """The output of a typed filter: one YAML value on one line. All that is derived from it is plain text again."""

    __slots__ = ()


class WrongType(TypeError):
    """A value has another type than its place in the object needs."""


def only_typed(value: Any) -> str:
    """Refuse what reaches the output of a template without a typed filter."""
    if isinstance(value, YamlValue):
        return value
    _refuse_undefined(value)
    raise WrongType(f"{_type_name(value)} without a typed filter: end the expression with | {' or | '.join(TYPED)}")


def to_yaml(value: Any) -> str:
    """Without a newline at its end, so that the template decides what follows."""
    return yaml_text(value).removesuffix("\n").removesuffix("\n...")


def from_yaml(written: str) -> Any:
    return document(str(_typed(written, str, "text")), most_nodes=MOST_NODES)


def to_json(value: Any) -> YamlValue:
    """Any value, which is also good YAML. For constants: it lets a value that others set have any structure."""
    _refuse_undefined(value)
    return YamlValue(_NOT_IN_YAML.sub(lambda found: f"\\u{ord(found[0]):04x}", canonical(value).decode()))


def text(value: Any) -> YamlValue:
    """A scalar that YAML reads as this text, whatever is in it."""
    return to_json(str(_typed(value, str, "text")))


def texts(values: Any) -> YamlValue:
    """A list of texts."""
    return to_json([_typed(value, str, "text") for value in _typed(values, list, "a list of texts")])


def integer(value: Any, least: int = _INT64.start, most: int = _INT64.stop - 1) -> YamlValue:
    """An integer that the API can store; within bounds where nobody else checks them, as in a file for a node."""
    number = _typed(value, int, "an integer")
    if number not in _INT64:
        raise WrongType("an integer of 64 bits is needed here, not a larger one")
    if not least <= number <= most:
        raise WrongType(f"an integer from {least} to {most} is needed here, not {number}")
    return to_json(number)


def b64encode(data: str | bytes) -> str:
    return _b64encode(_bytes(data)).decode()


def gzipped(data: str | bytes) -> bytes:
    """Stored in blocks: each build of zlib compresses in its own way, and another byte would reboot every node."""
    raw = _bytes(data)
    blocks = [raw[start : start + _LONGEST_BLOCK] for start in range(0, len(raw), _LONGEST_BLOCK)] or [b""]
    body = b"".join(struct.pack("<BHH", 0, len(block), len(block) ^ 0xFFFF) + block for block in blocks[:-1])
    last = struct.pack("<BHH", 1, len(blocks[-1]), len(blocks[-1]) ^ 0xFFFF) + blocks[-1]
    return _GZIP_HEADER + body + last + struct.pack("<II", zlib.crc32(raw), len(raw) & 0xFFFFFFFF)


def data_url(data: str | bytes, *, gzip: bool = False) -> YamlValue:
    """Return the source of a file in Ignition."""
    return text(f"data:;base64,{b64encode(gzipped(data) if gzip else data)}")


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


def merged_yaml(given: str, changes: dict[str, Any]) -> str:
    """Merge our changes into a user's YAML text; it is only appended to where possible, so that comments stay."""
    live = from_yaml(given) or {}
    if not isinstance(live, dict):
        raise BadYaml("not a map, so nothing can be added to it")
    wanted = merged(live, changes)
    if wanted == live:
        return given
    longer = f"{given.rstrip()}\n{yaml_text(changes)}".lstrip("\n")
    return longer if live.keys().isdisjoint(changes) and _reads_as(longer, wanted) else yaml_text(wanted)


TYPED = {"text": text, "texts": texts, "integer": integer, "to_json": to_json, "data_url": data_url}
"""Those that an expression in the output of a template can end with."""

FILTERS = TYPED | {
    "to_yaml": to_yaml,
    "from_yaml": from_yaml,
    "b64encode": b64encode,
    "gzip": gzipped,
    "dig": dig,
    "merged": merged,
    "merged_yaml": merged_yaml,
    "tls_profile": resolve_profile,
}


def _typed(value: Any, wanted: type[_T], name: str) -> _T:
    _refuse_undefined(value)
    if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
        raise WrongType(f"{name} is needed here, not {_type_name(value)}")
    return value


def _refuse_undefined(value: Any) -> None:
    if isinstance(value, Undefined):
        str(value)  # raises with the name of the variable


def _type_name(value: Any) -> str:
    names = {str: "text", bool: "a boolean", int: "an integer", float: "a number", list: "a list", dict: "a map"}
    return "null" if value is None else names.get(type(value), type(value).__name__)


def _reads_as(longer: str, wanted: Any) -> bool:
    try:
        return bool(document(longer) == wanted)
    except BadYaml:
        return False


def _bytes(data: str | bytes) -> bytes:
    return data if isinstance(data, bytes) else data.encode()
