"""Which desired values a live object does not have, compared without the server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from virt_steward.objects.canonical import same
from virt_steward.objects.paths import Pointer
from virt_steward.objects.quantities import BadQuantity, parse_quantity

if TYPE_CHECKING:
    from collections.abc import Iterator

_NOTHING = object()


def lacking(wanted: Any, live: Any, at: Pointer = Pointer()) -> Iterator[Pointer]:  # noqa: B008 - frozen, so safe to share
    """Pointers to desired values that the live object does not have. It may have more fields and list items."""
    match wanted, live:
        case dict(), dict():
            for name, value in wanted.items():
                yield from lacking(value, live.get(name, _NOTHING), at / name)
        case list(), list():
            for index, value in enumerate(wanted):
                if all(any(lacking(value, item)) for item in live):
                    yield at / index
        case (({} | [] | None), _) if live is _NOTHING:
            return  # a server may leave out empty values
        case _ if live is _NOTHING or not (same(wanted, live) or _is_as_much(wanted, live)):
            yield at


def _is_as_much(wanted: Any, live: Any) -> bool:
    """Whether both are the same quantity, which servers normalize: 1000m is 1."""
    try:
        return parse_quantity(str(wanted)) == parse_quantity(str(live))
    except BadQuantity:
        return False
