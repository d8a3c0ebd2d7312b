"""What stands behind the entries of a body, which is mostly the same from request to request: kept as bytes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping

from onrecord.jsonio import Json, dumps
from onrecord.models.request import Request

__all__ = ("RequestTails",)

MOST = 64


class RequestTails:
    """The ends of bodies by what they depend on: a request's settings, shape, choice and tools, and what a wire adds.

    ``len`` is how many are kept, at most `MOST`.
    """

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: dict[tuple[Hashable, ...], tuple[object, bytes]] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def of(self, request: Request, fields: Callable[..., Mapping[str, Json]], *how: Hashable) -> bytes:
        """The end of the list of entries and of the body; ``fields(request, *how)`` says what is in between."""
        specs = [offer.spec for offer in request.offers]
        key = (id(request.settings), id(request.shape), request.choice, *how, *map(id, specs))
        if (seen := self._kept.get(key)) is not None:
            return seen[1]
        held = fields(request, *how)
        tail = b"]," + dumps(held)[1:] if held else b"]}"
        if len(self._kept) >= MOST:
            self._kept.clear()
        # What the key names by id is kept with it, so that no id can come to mean something else.
        self._kept[key] = ((request.settings, request.shape, specs), tail)
        return tail
