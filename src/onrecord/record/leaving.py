"""What an entry leaves behind when it leaves the record. Every way out goes through here.

Watchers (and so telemetry, logs and commentary), `host.live`, exports, and what the command line prints: all of them
show what `leaving` makes of an entry. Only stores, and `TurnResult.entries`, hold the record itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import partial

from msgspec.structs import replace

from onrecord.conversation.outgoing import CallDelta
from onrecord.record.entry import Body, Entry
from onrecord.record.kinds import ToolStarted, VerdictFiled

__all__ = ("Leaves", "body_leaving", "call_leaving", "leaves_by", "leaving")

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


def call_leaving(delta: CallDelta, leaves: Leaves) -> CallDelta:
    """The live sign of a call, with arguments as the entry has them that tells of it."""
    body = body_leaving(ToolStarted(call=delta.id, round="", name=delta.name, args=delta.args, key=""), leaves)
    return replace(delta, args=body.args if isinstance(body, ToolStarted) else {})
