"""What an entry may hold of other turns, and the entry without it."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from onrecord.conversation.inputs import Input, Said, Woke
from onrecord.conversation.messages import Round
from onrecord.record.entry import Body, Entry
from onrecord.record.kinds import (
    ModelAttempted,
    ModelReplied,
    ModelRequested,
    Pending,
    Receipt,
    RoundSettled,
    TextSaid,
    TurnInput,
    TurnPaused,
)

__all__ = ("CONSULTED", "Names", "unpreviewed", "unquoted", "without_payload")

CONSULTED = "consult/"
"""How the names begin under which a paused turn keeps what features asked a model silently."""


class Names(Struct, frozen=True):
    """What messages that stay are called: by channels, and in the conversation."""

    known: frozenset[str]

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> Names:
        """The names of everything said in these entries."""
        found = set[str]()
        for entry in entries:
            body = entry.body
            if isinstance(body, TurnInput):
                found |= {body.input.key or "", f"{entry.turn}/u"}
            elif isinstance(body, TextSaid):
                found |= {body.key, f"{entry.turn}/a{entry.take}"}
        return cls(frozenset(found - {""}))


def unquoted(body: Body, names: Names) -> Body:
    """The body without words of turns before its own.

    A request, and an attempt at it, loses what it showed of history, a reply the provider's own items, which may repeat
    anything, a feature's silent question its whole reply, which may be a summary, and a message the preview of one that
    is not among ``names``.
    """
    if isinstance(body, ModelRequested):
        return body if body.receipt is None else replace(body, receipt=_bare(body.receipt))
    if isinstance(body, ModelAttempted):
        return replace(body, left_out=()) if body.left_out else body
    if isinstance(body, ModelReplied) and body.purpose == "consult":
        return replace(body, round=Round(id=body.round.id, use=body.round.use))
    if isinstance(body, (ModelReplied, RoundSettled)):
        return body if body.round.continuation is None else replace(body, round=_portable(body.round))
    if isinstance(body, TurnInput):
        return body if body.input is (said := unpreviewed(body.input, names)) else replace(body, input=said)
    if isinstance(body, TurnPaused):
        return body if (held := _unquoted(body.pending, names)) is body.pending else replace(body, pending=held)
    return body


def without_payload(body: Body) -> Body:
    """The body, of a turn that a wake began, without what the wake carried."""
    if isinstance(body, TurnInput) and isinstance(body.input, Woke):
        return replace(body, input=replace(body.input, payload=None))
    if isinstance(body, TurnPaused) and isinstance(body.pending.input, Woke):
        pending = replace(body.pending, input=replace(body.pending.input, payload=None))
        return replace(body, pending=pending)
    return body


def _unquoted(pending: Pending, names: Names) -> Pending:
    said = unpreviewed(pending.input, names)
    done = {key: held for key, held in pending.done.items() if not key.startswith(CONSULTED)}
    same = said is pending.input and len(done) == len(pending.done)
    return pending if same else replace(pending, input=said, done=done)


def _bare(receipt: Receipt) -> Receipt:
    return replace(
        receipt, spans=(), swaps=(), marks=(), left_out=(), units=0, own=0, stable_until=None, carries="", erased=True
    )  # fmt: skip


def _portable(held: Round) -> Round:
    return replace(held, continuation=None)


def unpreviewed(input: Input, names: Names) -> Input:
    """The input without the preview of a message that is not among ``names``."""
    if isinstance(input, Said) and input.reply_preview and input.reply_to not in names.known:
        return replace(input, reply_preview="")
    return input
