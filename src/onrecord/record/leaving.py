"""What an entry leaves behind when it leaves the record. Every way out goes through here.

Watchers (and so telemetry, logs and commentary), `host.live`, exports, and what the command line prints: all of them
show what `leaving` makes of an entry. Only stores, and `TurnResult.entries`, hold the record itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import partial

from msgspec.structs import replace

from onrecord.conversation.content import Text
from onrecord.conversation.messages import Round
from onrecord.conversation.outgoing import (
    CallDelta,
    ChildDelta,
    CitationDelta,
    Delta,
    ProgressDelta,
    ReasoningDelta,
    SearchDelta,
)
from onrecord.record.entry import Body, Entry
from onrecord.record.kinds import Noted, RoundSettled, ToolStarted, VerdictFiled

__all__ = ("Leaves", "body_leaving", "delta_leaving", "leaves_by", "leaving")

Leaves = Callable[[Entry], Entry]
"""How an entry looks outside the record. Where it raises, the entry is shown to nobody."""

_THEN = datetime.fromtimestamp(0, UTC)


def leaving(entry: Entry, redact: Leaves | None = None) -> Entry:
    """The entry as everybody outside the record gets it; the same one where there is nothing to take out.

    The texts that verdicts keep are for the record alone; ``redact`` is the redaction of the agent, if it has one.
    """
    body = entry.body
    if isinstance(body, VerdictFiled) and (body.before_text or body.after_text):
        entry = replace(entry, body=replace(body, before_text="", after_text=""))
    return entry if redact is None else redact(entry)


def leaves_by(redacts: Iterable[Leaves | None]) -> Leaves:
    """`leaving` with every one of several redactions: nobody knows which of them an entry needs."""
    found: Leaves = leaving
    for redact in dict.fromkeys(one for one in redacts if one is not None):
        found = partial(_then, found, redact)
    return found


def _then(first: Leaves, second: Leaves, entry: Entry) -> Entry:
    return second(first(entry))


def body_leaving(body: Body, leaves: Leaves) -> Body:
    """What leaves of something that is shown apart from its entry, as that entry would show it."""
    return leaves(Entry(seq=0, n=0, turn="", take=0, where="", at=_THEN, cause=None, body=body)).body


def delta_leaving(delta: Delta, leaves: Leaves) -> Delta | None:
    """What leaves of a live sign; what comes whole looks as an entry that tells of it. None: nothing does.

    Words of a reply go as they are said, since nobody could tell from a piece what has to be taken out, and for that
    reason reasoning does not go.
    """
    match delta:
        case CallDelta():
            body = body_leaving(ToolStarted(call=delta.id, round="", name=delta.name, args=delta.args, key=""), leaves)
            return replace(delta, args=body.args if isinstance(body, ToolStarted) else {})
        case ProgressDelta():
            body = body_leaving(Noted(by=delta.name, text=delta.message), leaves)
            return replace(delta, message=body.text if isinstance(body, Noted) else "")
        case CitationDelta():
            body = body_leaving(
                RoundSettled(round=Round(id="", content=(Text("", citations=delta.citations),))), leaves
            )
            held = body.round.content if isinstance(body, RoundSettled) else ()
            return CitationDelta(tuple(one for part in held if isinstance(part, Text) for one in part.citations))
        case ChildDelta():
            below = delta_leaving(delta.delta, leaves)
            return replace(delta, delta=below) if isinstance(below, (CallDelta, SearchDelta, ChildDelta)) else None
        case ReasoningDelta():
            return None
        case _:
            return delta
