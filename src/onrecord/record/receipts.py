"""What a receipt is made of: a request that was sent, told by digests, places and marks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from onrecord.conversation.content import Part
from onrecord.conversation.messages import ContextMessage
from onrecord.jsonio import Json

__all__ = ("HeadMark", "LeftMark", "PieceMark", "Receipt", "SpanMark", "SwapMark")


class PieceMark(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """A prompt piece as a receipt keeps it: where it came from, its place, and the digest of its text."""

    source: str
    rank: int
    digest: str
    place: str = "system"


class SpanMark(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """A stretch of history as shown: unit indices, and the chained digest up to its end; or an inserted message."""

    start: int = 0
    stop: int = 0
    chain: str = ""
    insert: ContextMessage | None = None


class SwapMark(Struct, frozen=True, gc=False, kw_only=True):
    """A tool result that this request showed otherwise."""

    unit: int
    call: int
    shows: tuple[Part, ...]


class HeadMark(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """Cache marks in front of the units: after so many system pieces, after the tools, and for how long."""

    system: int = 0
    tools: bool = False
    ttl: Literal["short", "long"] = "short"


class LeftMark(Struct, frozen=True, gc=False, kw_only=True):
    """Something that the model could not be sent and was left out; ``unit`` is -1 where it is no unit."""

    unit: int
    what: str


class Receipt(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """What was sent, as digests: enough to rebuild the request and to prove every part of it.

    ``units`` is the number of conversation units and ``own`` the first one of this brief; ``offers`` and ``shape``
    are digests of texts filed once as ``piece.filed``; ``stable_until`` counts the units whose bytes the previous
    request already had (None: no request of this form is known, as after loading a session). ``stand_ins``: media was
    shown by its words where the model takes none; ``degrade``: what it cannot be sent was left out, and ``left_out``
    says what that was. ``erased``: some of what it showed was erased, and with that everything it said of history.
    """

    pieces: tuple[PieceMark, ...] = ()
    spans: tuple[SpanMark, ...] = ()
    swaps: tuple[SwapMark, ...] = ()
    marks: tuple[int, ...] = ()
    head: HeadMark | None = None
    stand_ins: bool = False
    degrade: bool = False
    left_out: tuple[LeftMark, ...] = ()
    units: int = 0
    own: int = 0
    carries: str = ""
    offers: str = ""
    shape: str = ""
    choice: str = "auto"
    settings: Mapping[str, Json] = {}
    scope: str = ""
    stable_until: int | None = None
    erased: bool = False
