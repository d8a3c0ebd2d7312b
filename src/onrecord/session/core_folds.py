"""The built-in folds, one function per core kind: what an entry does to the working state of its take."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from msgspec import Raw
from msgspec.structs import replace

from onrecord.conversation.content import Mark, Part, Text, as_parts
from onrecord.conversation.conversation import Conversation
from onrecord.conversation.inputs import Said
from onrecord.conversation.messages import (
    AssistantMessage,
    ContextMessage,
    Message,
    Round,
    ToolCall,
    UserMessage,
)
from onrecord.errors import RecordInvalid
from onrecord.jsonio import UNREADABLE, misfit, same_json
from onrecord.record import kinds
from onrecord.record.entry import Body, Entry
from onrecord.record.kinds import Pending
from onrecord.session.codec import decoder
from onrecord.session.erasure import Kept
from onrecord.session.session import KEPT_FILED, KEPT_INPUTS, SlotState
from onrecord.session.working import Working

__all__ = ("CORE",)

JUST_AFTER = timedelta(milliseconds=1)


def _opened(w: Working, e: Entry, b: kinds.TurnOpened) -> None:
    w.now, w.started_at, w.proactive = b.now, e.at, b.input_kind != "said"
    if b.drops and w.pending is not None and w.pending.turn == b.drops:
        _drop_pending(w, w.pending)
    _learn(w, b.input_key)
    if b.outside and w.outside is None:
        w.use_history(w.conversation)


def _learn(w: Working, key: str) -> None:
    if key:
        w.inputs = (*w.inputs, key)[-KEPT_INPUTS:]


def _drop_pending(w: Working, pending: Pending) -> None:
    rounds = tuple(replace(r, calls=tuple(_cancelled(c) for c in r.calls)) for r in pending.rounds)
    w.pending = None
    if not rounds or _is_act(rounds[-1].id):
        return
    message = AssistantMessage(id=f"{pending.turn}/a{pending.take}x", turn=pending.turn, rounds=rounds)
    if w.outside is not None:  # this take runs over the caller's history; the dropped rounds are the session's
        w.outside = w.outside.add(message)
        return
    w.conversation = w.conversation.add(message)
    w.base_units = len(w.conversation.units)


def _cancelled(call: ToolCall) -> ToolCall:
    return replace(call, status="cancelled") if call.status == "asked" else call


def _input(w: Working, e: Entry, b: kinds.TurnInput) -> None:
    said = b.input
    if not isinstance(said, Said):
        return
    message = UserMessage(
        id=f"{e.turn}/u", turn=e.turn, content=as_parts(said.content), at=said.at or b.now, notice=said.notice,
        reply_to=said.reply_to, reply_preview=said.reply_preview,
    )  # fmt: skip
    w.conversation = w.conversation.add(message)
    w.base_units = len(w.conversation.units)
    # What arrives late was written when its channel says; nobody writes in the future.
    w.last_user_at = _after(w.last_assistant_at, b.now) if said.at is None else min(said.at, b.now)


def _after(said: datetime | None, now: datetime | None) -> datetime | None:
    """The instant, behind what was said before it: a clock that was set back does not turn the two round."""
    return now if said is None or now is None or now >= said else said + JUST_AFTER


def _context(w: Working, e: Entry, b: kinds.ContextAdded) -> None:
    id = f"{e.turn}/x{e.n}"
    message = ContextMessage(id=id, turn=e.turn, content=b.content, authority=b.authority, writer=b.writer)
    if w.open is not None and any(c.status == "asked" for c in w.open.calls):
        w.behind = (*w.behind, message)  # its calls are running: the text follows their results
        return
    w.settle_open()
    w.add_context(message)


def _requested(w: Working, e: Entry, b: kinds.ModelRequested) -> None:
    if len(w.filed) > KEPT_FILED:
        w.filed = _still_filed(w.filed, b.receipt)
    if b.purpose in ("speak", "wrap_up"):
        w.settle_open()


def _still_filed(filed: tuple[str, ...], receipt: kinds.Receipt | None) -> tuple[str, ...]:
    """The latest digests; all that the last request shows stay, or a long prompt would be filed anew each time."""
    shown = set() if receipt is None else {m.digest for m in receipt.pieces} | {receipt.offers, receipt.shape}
    over = len(filed) - KEPT_FILED
    kept: list[str] = []
    for digest in filed:
        if over > 0 and digest not in shown:
            over -= 1
        else:
            kept.append(digest)
    return tuple(kept)


def _replied(w: Working, e: Entry, b: kinds.ModelReplied) -> None:
    w.completed_at = e.at
    if b.purpose in ("speak", "wrap_up"):
        w.open = _unwrapped(b.round, b.shown) if b.unwrapped and b.shown is not None else b.round


def _unwrapped(held: Round, shown: str) -> Round:
    """A round with the words that came out of its envelope. Native items stay with calls: vendors want them back."""
    others = tuple(part for part in held.content if not isinstance(part, Text))
    words = (Text(shown),) if shown else ()
    return replace(held, content=(*words, *others), continuation=held.continuation if held.calls else None)


def _settled(w: Working, e: Entry, b: kinds.RoundSettled) -> None:
    if _is_act(b.round.id):
        w.acting = b.round
    else:
        w.open = b.round


def _verb(round_id: str) -> str:
    return round_id.rsplit("/", 1)[0]


def _is_act(round_id: str) -> bool:
    return round_id.rsplit("/", 1)[-1].startswith("act")


def _call(held: Round, call_id: str) -> tuple[int, ToolCall | None]:
    """A call of a round and its place; None when there is no such call."""
    calls, place = held.calls, call_id.rsplit("/c", 1)[-1]
    if place.isdecimal() and (at := int(place)) < len(calls) and calls[at].id == call_id:
        return at, calls[at]  # the usual place: a reply may hold very many calls
    for at, call in enumerate(calls):
        if call.id == call_id:
            return at, call
    return -1, None


def _returned(w: Working, e: Entry, b: kinds.ToolReturned) -> None:
    held = w.round(b.round)
    at, call = _call(held, b.call)
    if call is None:
        return
    _put_call(w, held, at, replace(call, status=b.status, result=b.result, notes=b.notes))


def _started(w: Working, e: Entry, b: kinds.ToolStarted) -> None:
    held = w.round(b.round)
    at, call = _call(held, b.call)
    if call is None:
        raise RecordInvalid(f"an entry names call {b.call!r}, which is not in its round")
    if call.args == b.args and same_json(call.args, b.args):
        return
    _put_call(w, held, at, replace(call, args=b.args))


def _put_call(w: Working, held: Round, at: int, call: ToolCall) -> None:
    """Another call at its place in the round that is open or acting."""
    changed = replace(held, calls=(*held.calls[:at], call, *held.calls[at + 1 :]))
    if held is w.acting:
        w.acting = changed
    else:
        w.open = changed


def _said(w: Working, e: Entry, b: kinds.TextSaid) -> None:
    if b.side == "user":
        w.last_user_at = _after(w.last_assistant_at, w.now)
        return
    _spoke(w)
    if not b.text.strip():
        return
    w.completed_at = e.at
    if b.verbatim:
        w.settle_open()
        w.open = Round(id=b.round, content=(Text(b.text),))
    _show(w, b.shown or (Text(b.text),))
    w.blocks = (*w.blocks, *b.blocks)


def _spoke(w: Working) -> None:
    """The assistant spoke now; what the person wrote came before, whatever the clock said then."""
    w.last_assistant_at = w.now
    if w.now is not None and w.last_user_at is not None and w.last_user_at > w.now:
        w.last_user_at = w.now


def _show(w: Working, shown: tuple[Text | Mark, ...]) -> None:
    w.shown = (*w.shown, Text("\n\n"), *shown) if w.shown else shown


def _patched(w: Working, e: Entry, b: kinds.DataPatched) -> None:
    if w.whole:
        w.data = {**w.data, **b.patch}
        if b.drop:
            w.data = {name: value for name, value in w.data.items() if name not in b.drop}


def _piece(w: Working, e: Entry, b: kinds.PieceFiled) -> None:
    w.filed = (*w.filed, b.digest)


def _flush(
    w: Working, e: Entry, rounds: tuple[Round, ...], interrupted: str | None = None, heard: int | None = None
) -> None:
    """The rounds of this take become one message."""
    late, w.late = w.late, ()
    if late:  # they stand before the message that grew around them
        cut = w.conversation.units.cut(w.base_units).extend(late)
        w.conversation, w.base_units = Conversation(w.conversation.messages, cut), len(cut)
    if w.shown or any(_holds_something(r) for r in rounds):
        message = AssistantMessage(
            id=f"{e.turn}/a{e.take}", turn=e.turn, rounds=rounds, shown=w.shown, blocks=w.blocks,
            started_at=w.started_at, completed_at=w.completed_at, interrupted=interrupted, heard=heard,
            proactive=w.proactive,
        )  # fmt: skip
        w.conversation = w.conversation.close(w.base_units, message)
    elif len(w.conversation.units) > w.base_units:
        w.conversation = Conversation(w.conversation.messages, w.conversation.units.cut(w.base_units))
    w.base_units, w.open, w.acting, w.shown, w.blocks = len(w.conversation.units), None, None, (), ()


def _holds_something(held: Round) -> bool:
    """Whether a round has words, reasoning or calls: a blank one alone makes no message."""
    return bool(held.calls) or any(getattr(part, "text", "").strip() for part in held.content)


def _kept(w: Working, *, settled_only: bool = False) -> tuple[Round, ...]:
    w.settle_open()
    running = w.conversation.units.since(w.base_units)
    rounds = tuple(u for u in running if isinstance(u, Round) and not u.revised)
    if settled_only:
        rounds = tuple(r for r in rounds if all(c.status != "asked" for c in r.calls))
    return rounds


def _closed(w: Working, e: Entry, b: kinds.TurnClosed) -> None:
    _flush(w, e, _kept(w))


def _failed(w: Working, e: Entry, b: kinds.TurnFailed) -> None:
    _cut_short(w, e, b.shown, None, None)


def _cut_short(w: Working, e: Entry, shown: tuple[Text | Mark, ...], cause: str | None, heard: int | None) -> None:
    if shown:
        _show(w, shown)
        w.completed_at = e.at
        _spoke(w)
    _flush(w, e, _kept(w, settled_only=True), cause or ("failed" if shown else None), heard)


def _interrupted(w: Working, e: Entry, b: kinds.TurnInterrupted) -> None:
    known = b.id in w.interruptions
    if not known:
        w.interruptions = (*w.interruptions, b.id)[-KEPT_INPUTS:]
    if b.of == e.turn:
        _cut_short(w, e, b.shown, b.cause, b.heard)
    if known or b.of == e.turn:
        return
    for index in range(len(w.conversation.messages) - 1, -1, -1):
        message = w.conversation.messages[index]
        if isinstance(message, AssistantMessage) and message.turn == b.of:
            cut = replace(message, interrupted=b.cause, heard=b.heard)
            w.conversation = w.conversation.put(index, message=cut)
            break
    w.base_units = len(w.conversation.units)


def _paused(w: Working, e: Entry, b: kinds.TurnPaused) -> None:
    verb = f"{e.turn}/{b.pending.key}"
    w.settle_open()
    running = [u for u in w.conversation.units.since(w.base_units) if isinstance(u, Round)]
    held = tuple(r for r in running if _verb(r.id) == verb)
    if w.acting is not None and _verb(w.acting.id) == verb:
        held = (*held, w.acting)
    _flush(w, e, tuple(r for r in running if not r.revised and _verb(r.id) != verb))
    w.pending, w.paused = replace(b.pending, rounds=held), True


def _resumed(w: Working, e: Entry, b: kinds.TurnResumed) -> None:
    if w.pending is None or w.pending.turn != e.turn:
        raise RecordInvalid(f"turn {e.turn!r} is resumed but nothing of it is pending")
    rounds, w.proactive = w.pending.rounds, not isinstance(w.pending.input, Said)
    w.now, w.started_at = b.now, e.at
    w.resume_slots()
    _learn(w, b.input_key)
    if w.pending.outside and w.outside is None:
        w.use_history(w.conversation)
    w.base_units = len(w.conversation.units)
    for held in rounds:
        w.settle_open()
        if _is_act(held.id):
            w.acting = held
        else:
            w.open = held
    w.pending = None


def _history(w: Working, e: Entry, b: kinds.HistoryChanged) -> None:
    if b.op == "import":
        for message in _value(b, tuple[Message, ...]):
            w.conversation = w.conversation.add(message)
    elif b.op == "edit":
        w.conversation = w.conversation.edit_result(b.message, b.call, _value(b, tuple[Part, ...]))
    elif b.op == "remove":
        w.conversation = w.conversation.put(w.conversation.index_of(b.message), message=None)
    elif b.op == "erase":
        _erased(w, _value(b, Kept))
    else:
        w.conversation, w.data, w.pending, w.generation = Conversation(), {}, None, w.generation + 1
        w.slots, w.others = {f.name: f.start() for f in w.folds.all}, {}
        w.last_user_at = w.last_assistant_at = None  # nobody has said anything, so nobody is silent since
    w.base_units = len(w.conversation.units)


def _erased(w: Working, kept: Kept) -> None:
    """What was erased folds to nothing; this is what the session has all the same."""
    w.generation, w.data = kept.generation, {**w.data, **kept.data}
    w.inputs, w.interruptions = kept.inputs, kept.interruptions
    w.last_user_at, w.last_assistant_at = kept.last_user_at, kept.last_assistant_at
    w.keep_slots({name: SlotState(slot.version, slot.value, slot.quotes) for name, slot in kept.slots.items()})


def _value(b: kinds.HistoryChanged, kind: Any) -> Any:
    try:
        return decoder(kind)(b.value or Raw(b"[]"))
    except UNREADABLE as error:
        raise RecordInvalid(f"the value of a change of history does not decode: {misfit(error)}") from None


CORE: dict[type[Body], Callable[[Working, Entry, Any], None]] = {
    kinds.TurnOpened: _opened,
    kinds.TurnInput: _input,
    kinds.TurnPaused: _paused,
    kinds.TurnResumed: _resumed,
    kinds.TurnInterrupted: _interrupted,
    kinds.TurnFailed: _failed,
    kinds.TurnClosed: _closed,
    kinds.ModelRequested: _requested,
    kinds.ModelReplied: _replied,
    kinds.RoundSettled: _settled,
    kinds.ToolStarted: _started,
    kinds.ToolReturned: _returned,
    kinds.TextSaid: _said,
    kinds.DataPatched: _patched,
    kinds.ContextAdded: _context,
    kinds.HistoryChanged: _history,
    kinds.PieceFiled: _piece,
}
"""What each kind does; a kind that is not here changes no built-in state."""
