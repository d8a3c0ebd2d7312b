"""What leaves a turn: messages to deliver, wakes to arm, outcome lines, and the live deltas of a stream."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Literal

from msgspec import Struct

from onrecord.conversation.content import Citation, Mark
from onrecord.conversation.identity import SessionKey
from onrecord.jsonio import Json

__all__ = (
    "CallDelta",
    "ChildDelta",
    "CitationDelta",
    "Delta",
    "MarkDelta",
    "Outcome",
    "Outgoing",
    "ReasoningDelta",
    "SearchDelta",
    "TextDelta",
    "Wake",
    "disarmed",
)


class Outgoing(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True, tag_field="type", tag="out"):
    """A message to deliver; ``key`` is deterministic, so a channel can drop a repeat. ``after_ms`` delays it."""

    key: str
    text: str
    kind: Literal["ai", "verbatim"] = "ai"
    media: str | None = None
    after_ms: int = 0
    marks: tuple[Mark, ...] = ()
    speaks: bool = True
    about: Mapping[str, str] = {}


class Wake(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """A timer that a turn arms: at ``at`` (with a UTC offset) the session takes a `Woke` with this key and payload.

    It takes the place of another wake with its key, and of that with the key ``replaces``. ``session`` names another
    session that takes it instead.
    """

    key: str
    at: datetime
    payload: Json = None
    replaces: str | None = None
    session: SessionKey | None = None


def disarmed(wakes: Iterable[Wake], key: str, session: SessionKey) -> list[Wake]:
    """What a turn of this session has armed, once it withdraws its wake of this key."""
    return [wake for wake in wakes if wake.key != key or wake.session not in {None, session}]


class Outcome(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """A coded line saying what a director did or skipped."""

    kind: str
    status: str
    code: str | None = None
    message: str = ""
    detail: Json = None
    key: str | None = None
    next: str | None = None
    until: datetime | None = None
    at: datetime | None = None
    llm_calls: int = 0
    about: Mapping[str, Json] = {}


class TextDelta(Struct, frozen=True, gc=False):
    """A piece of the reply, in order; ``at`` is its offset in the text streamed by this turn so far."""

    text: str
    at: int = 0


class MarkDelta(Struct, frozen=True, gc=False):
    """A control token at its place in the reply."""

    mark: Mark
    at: int = 0


class ReasoningDelta(Struct, frozen=True, gc=False):
    """A piece of the model's reasoning, where the wire shows it."""

    text: str


class CallDelta(Struct, frozen=True, gc=False, kw_only=True):
    """A tool call started (``status`` ``asked``) or ended (its final status)."""

    id: str
    name: str
    status: str
    args: Mapping[str, Json] = {}


class SearchDelta(Struct, frozen=True, gc=False, kw_only=True):
    """A search that the provider runs changed state."""

    id: str
    status: str


class CitationDelta(Struct, frozen=True, gc=False):
    """Sources of text streamed so far; places count within the text of the round that is running."""

    citations: tuple[Citation, ...]


class ChildDelta(Struct, frozen=True, gc=False, kw_only=True):
    """What a sub-agent does for the call ``call`` of this turn: its calls and searches, never its words.

    ``agent`` is its name. What is deeper comes as a `ChildDelta` in a `ChildDelta`.
    """

    call: str
    agent: str
    delta: CallDelta | SearchDelta | ChildDelta


Delta = TextDelta | MarkDelta | ReasoningDelta | CallDelta | SearchDelta | CitationDelta | ChildDelta
