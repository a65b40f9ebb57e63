"""What an object lacks of what somebody wants of it, as far as that shows without asking a server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from virt_steward.objects.canonical import same
from virt_steward.objects.paths import Pointer
from virt_steward.objects.quantities import BadQuantity, parse_quantity

if TYPE_CHECKING:
    from collections.abc import Iterator

_NOTHING = object()


def lacking(wanted: Any, live: Any, at: Pointer = Pointer()) -> Iterator[Pointer]:  # noqa: B008 - frozen, so safe to share
    """Walk the wanted values that the live object does not have. It may have others, and its lists further items."""
    match wanted, live:
        case dict(), dict():
            for name, value in wanted.items():
                yield from lacking(value, live.get(name, _NOTHING), at / name)
        case list(), list():
            for index, value in enumerate(wanted):
                if all(any(lacking(value, item)) for item in live):
                    yield at / index
        case (({} | [] | None), _) if live is _NOTHING:
            return  # what is empty, a server may leave out
        case _ if live is _NOTHING or not (same(wanted, live) or _is_as_much(wanted, live)):
            yield at


def _is_as_much(wanted: Any, live: Any) -> bool:
    """Tell whether these are one quantity, which servers rewrite: 1000m is 1."""
    try:
        return parse_quantity(str(wanted)) == parse_quantity(str(live))
    except BadQuantity:
        return False
