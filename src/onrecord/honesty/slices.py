"""Slices: the entries that led to one of them, or to the last answer."""

from __future__ import annotations

from typing import Any

from onrecord.record import kinds
from onrecord.record.entry import Entry, kind_of
from onrecord.record.record import Record

__all__ = ("last_answer", "slice_of")


def last_answer(record: Record[Any]) -> int | None:
    """The number of the last thing the agent said; of the last entry where it never said anything."""
    for entry in reversed(record.entries):
        if isinstance(entry.body, kinds.TextSaid) and entry.body.side == "assistant":
            return entry.seq
    return record.entries[-1].seq if record.entries else None


def slice_of(record: Record[Any], seq: int) -> tuple[Entry, ...]:
    """The entries that led to this one, in order.

    The chain of causes; where the turn had paused, also what led to the question; and what stood beside the chain and
    had a say: every call of its rounds, what rules decided about them, about the input and about the answer.
    """
    chain = list(record.why(seq))
    turn = record.turns()[chain[-1].turn]
    while isinstance(chain[0].body, kinds.TurnResumed):
        pauses = [e for e in turn if e.seq < chain[0].seq and isinstance(e.body, kinds.TurnPaused)]
        if not pauses:
            break
        chain = [*record.why(pauses[-1].seq), *chain]
    held = {entry.seq for entry in chain}
    rounds = {e.body.round.id for e in chain if isinstance(e.body, (kinds.ModelReplied, kinds.RoundSettled))}
    return tuple(e for e in turn if e.seq in held or (e.seq < seq and _takes_part(e, rounds)))


def _takes_part(entry: Entry, rounds: set[str]) -> bool:
    body = entry.body
    if isinstance(body, (kinds.ToolStarted, kinds.ToolReturned)):
        return body.round in rounds
    if kind_of(body) == "cost.limit_hit":  # of a `Budget`, which may have ended the turn
        return True
    return isinstance(body, (kinds.VerdictFiled, kinds.ModelAttempted, kinds.ContextAdded, kinds.TurnInterrupted))
