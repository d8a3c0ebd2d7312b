"""The built-in folds: how entries become the session, live while a turn runs and again at every replay.

A take folds into one mutable `Working` state; what it makes is a new `Session`. Whole takes are read by all folds;
takes that were interrupted or failed (*unfinished* ones) only by the conversation, inputs, interruptions, pending and
the feature folds that say so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from onrecord.conversation.content import Mark, Part, Text, as_parts
from onrecord.conversation.conversation import Conversation
from onrecord.conversation.identity import SessionKey
from onrecord.conversation.inputs import Said
from onrecord.conversation.messages import (
    AssistantMessage,
    Block,
    ContextMessage,
    Message,
    Round,
    ToolCall,
    UserMessage,
)
from onrecord.errors import RecordInvalid, UsageError
from onrecord.record import kinds
from onrecord.record.entry import Body, Entry
from onrecord.record.fold import Fold, takes
from onrecord.record.kinds import Pending
from onrecord.session.codec import slot_value
from onrecord.session.session import KEPT_FILED, KEPT_INPUTS, Session, SlotState

__all__ = ("Folds", "Working", "land", "refold")

_parts = msgspec.json.Decoder(tuple[Part, ...]).decode
_messages = msgspec.json.Decoder(tuple[Message, ...]).decode


class Folds:
    """Feature folds, compiled once: which read an entry of which kind."""

    def __init__(self, folds: Iterable[Fold[Any]] = ()) -> None:
        self.all = tuple(folds)
        self.by_kind: dict[object, tuple[Fold[Any], ...]] = {}
        for fold in self.all:
            for kind in fold.kinds:
                self.by_kind[kind] = (*self.by_kind.get(kind, ()), fold)


NO_FOLDS = Folds()


class Working:
    """The state of a session while one take is folded into it. One owner, not thread-safe.

    Its rounds: the last one is ``open`` until the next request or the end, since results still arrive; the others
    are already units of ``conversation``.
    """

    __slots__ = (
        "acting", "base", "base_units", "blocks", "completed_at", "conversation", "data", "drops", "filed", "folds",
        "generation", "inputs", "interruptions", "last_assistant_at", "last_user_at", "late", "now", "open", "outside",
        "pending", "proactive", "shown", "slots", "started_at", "whole",
    )  # fmt: skip

    def __init__(self, session: Session, folds: Folds = NO_FOLDS, *, whole: bool = True) -> None:
        self.base, self.folds, self.whole = session, folds, whole
        self.conversation = session.conversation
        self.outside: Conversation | None = None
        self.data: Mapping[str, Any] = session.data
        self.inputs, self.interruptions = session.inputs, session.interruptions
        self.pending, self.generation, self.filed = session.pending, session.generation, session.filed
        self.last_user_at, self.last_assistant_at = session.last_user_at, session.last_assistant_at
        self.slots: dict[str, Any] = {f.name: _slot(session, f) for f in folds.all} if folds.all else {}
        self.open: Round | None = None
        self.acting: Round | None = None
        self.base_units = len(session.conversation.units)
        self.shown: tuple[Text | Mark, ...] = ()
        self.blocks: tuple[Block, ...] = ()
        self.late: tuple[ContextMessage, ...] = ()
        self.now: datetime | None = None
        self.started_at: datetime | None = None
        self.completed_at: datetime | None = None
        self.proactive = False

    def apply(self, entry: Entry) -> None:
        """Folds one entry in, at once."""
        body = entry.body
        handler = _CORE.get(type(body))
        if handler is not None:
            handler(self, entry, body)
        if self.folds.by_kind:
            for fold in self.folds.by_kind.get(body.__struct_config__.tag, ()):
                if self.whole or fold.unfinished:
                    self.slots[fold.name] = fold.apply(self.slots[fold.name], entry)

    def use_history(self, history: Conversation) -> None:
        """The take runs over the caller's history; the session's own conversation is left as it is."""
        self.outside = self.conversation
        self.conversation, self.base_units = history, len(history.units)

    @property
    def rounds(self) -> tuple[Round, ...]:
        """The rounds of this take so far, the open one last."""
        settled = tuple(u for u in self.conversation.units.since(self.base_units) if isinstance(u, Round))
        return settled if self.open is None else (*settled, self.open)

    def round(self, id: str) -> Round:
        """The open or acting round with this id."""
        for held in (self.open, self.acting):
            if held is not None and held.id == id:
                return held
        raise RecordInvalid(f"an entry names round {id!r}, which is not open")

    def session(self, entries: int) -> Session:
        """The session after a take of this many entries."""
        base = self.base
        slots = base.slots
        if self.folds.all:
            mine = {f.name: SlotState(f.version, self.slots[f.name]) for f in self.folds.all if f.scope == "session"}
            slots = {**base.slots, **mine}
        return Session(
            key=base.key, version=base.version, generation=self.generation, seq=base.seq + entries, owner=base.owner,
            parent=base.parent, data=self.data, inputs=self.inputs, interruptions=self.interruptions,
            pending=self.pending, last_user_at=self.last_user_at, last_assistant_at=self.last_assistant_at,
            slots=slots, digest_key=base.digest_key, filed=self.filed,
            conversation=self.conversation if self.outside is None else self.outside,
        )  # fmt: skip

    def settle_open(self) -> None:
        """The open round becomes a unit: what follows sees it, and it changes no more."""
        if self.open is not None:
            self.conversation = self.conversation.grow(self.open)
            self.open = None


def _slot(session: Session, fold: Fold[Any]) -> Any:
    held = session.slots.get(fold.name)
    if held is None or fold.scope == "turn":
        return fold.start()
    if held.version != fold.version:
        raise UsageError(
            f"session {session.key.id!r} holds version {held.version} of {fold.name!r}, this agent folds version "
            f"{fold.version}",
            hint="fold the session's record again: onrecord.session.refold(session.key, entries, folds)",
        )
    return slot_value(held, fold.state)


# ---- one function per core kind --------------------------------------------------------------------------------------


def _opened(w: Working, e: Entry, b: kinds.TurnOpened) -> None:
    w.now, w.started_at, w.proactive = b.now, e.at, b.input_kind != "said"
    if b.drops and w.pending is not None and w.pending.turn == b.drops:
        _drop_pending(w, w.pending)
    if b.input_key:
        w.inputs = (*w.inputs, b.input_key)[-KEPT_INPUTS:]
    if b.outside and w.outside is None:
        w.use_history(w.conversation)


def _drop_pending(w: Working, pending: Pending) -> None:
    rounds = tuple(replace(r, calls=tuple(_cancelled(c) for c in r.calls)) for r in pending.rounds)
    w.pending = None
    if rounds and not _is_act(rounds[-1].id):
        message = AssistantMessage(id=f"{pending.turn}/a{pending.take}x", turn=pending.turn, rounds=rounds)
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
    w.last_user_at = b.now


def _context(w: Working, e: Entry, b: kinds.ContextAdded) -> None:
    id = f"{e.turn}/x{e.n}"
    message = ContextMessage(id=id, turn=e.turn, content=b.content, authority=b.authority, writer=b.writer)
    w.settle_open()
    running = len(w.conversation.units) > w.base_units
    w.conversation = w.conversation.add(message)
    if running:
        w.late = (*w.late, message)
    else:
        w.base_units = len(w.conversation.units)


def _requested(w: Working, e: Entry, b: kinds.ModelRequested) -> None:
    if b.purpose in ("speak", "wrap_up"):
        w.settle_open()


def _replied(w: Working, e: Entry, b: kinds.ModelReplied) -> None:
    w.completed_at = e.at
    if b.purpose in ("speak", "wrap_up"):
        w.open = b.round


def _settled(w: Working, e: Entry, b: kinds.RoundSettled) -> None:
    if _is_act(b.round.id):
        w.acting = b.round
    else:
        w.open = b.round


def _is_act(round_id: str) -> bool:
    return round_id.rsplit("/", 1)[-1].startswith("act")


def _returned(w: Working, e: Entry, b: kinds.ToolReturned) -> None:
    held = w.round(b.round)
    calls = tuple(
        replace(c, status=b.status, result=b.result, notes=b.notes) if c.id == b.call else c for c in held.calls
    )
    settled = replace(held, calls=calls)
    if held is w.acting:
        w.acting = settled
    else:
        w.open = settled


def _started(w: Working, e: Entry, b: kinds.ToolStarted) -> None:
    held = w.round(b.round)
    call = next(c for c in held.calls if c.id == b.call)
    if call.args is b.args or call.args == b.args:
        return
    settled = replace(held, calls=tuple(replace(c, args=b.args) if c.id == b.call else c for c in held.calls))
    if held is w.acting:
        w.acting = settled
    else:
        w.open = settled


def _said(w: Working, e: Entry, b: kinds.TextSaid) -> None:
    if b.side == "user":
        w.last_user_at = w.now
        return
    w.last_assistant_at = w.now
    if not b.text.strip():
        return
    w.completed_at = e.at
    if b.verbatim:
        w.settle_open()
        w.open = Round(id=b.round, content=(Text(b.text),))
    shown = b.shown or (Text(b.text),)
    w.shown = (*w.shown, Text("\n\n"), *shown) if w.shown else shown
    w.blocks = (*w.blocks, *b.blocks)


def _patched(w: Working, e: Entry, b: kinds.DataPatched) -> None:
    if w.whole:
        w.data = {**w.data, **b.patch}


def _piece(w: Working, e: Entry, b: kinds.PieceFiled) -> None:
    w.filed = (*w.filed, b.digest)[-KEPT_FILED:]


def _flush(
    w: Working, e: Entry, rounds: tuple[Round, ...], interrupted: str | None = None, heard: int | None = None
) -> None:
    """The rounds of this take become one message."""
    late, w.late = w.late, ()
    if late:  # they stand before the message that grew around them
        cut = w.conversation.units.cut(w.base_units).extend(late)
        w.conversation, w.base_units = Conversation(w.conversation.messages, cut), len(cut)
    if rounds or w.shown:
        message = AssistantMessage(
            id=f"{e.turn}/a{e.take}", turn=e.turn, rounds=rounds, shown=w.shown, blocks=w.blocks,
            started_at=w.started_at, completed_at=w.completed_at, interrupted=interrupted, heard=heard,
            proactive=w.proactive,
        )  # fmt: skip
        w.conversation = w.conversation.close(w.base_units, message)
    elif len(w.conversation.units) > w.base_units:
        w.conversation = Conversation(w.conversation.messages, w.conversation.units.cut(w.base_units))
    w.base_units, w.open, w.acting, w.shown, w.blocks = len(w.conversation.units), None, None, (), ()


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


def _cut_short(w: Working, e: Entry, shown: Sequence[Text | Mark], cause: str | None, heard: int | None) -> None:
    if shown:
        w.shown = (*w.shown, Text("\n\n"), *shown) if w.shown else tuple(shown)
        w.last_assistant_at = w.now
    _flush(w, e, _kept(w, settled_only=True), cause or ("failed" if shown else None), heard)


def _interrupted(w: Working, e: Entry, b: kinds.TurnInterrupted) -> None:
    if b.id in w.interruptions:
        return
    w.interruptions = (*w.interruptions, b.id)[-KEPT_INPUTS:]
    if b.of == e.turn:
        _cut_short(w, e, b.shown, b.cause, b.heard)
        return
    for index in range(len(w.conversation.messages) - 1, -1, -1):
        message = w.conversation.messages[index]
        if isinstance(message, AssistantMessage) and message.turn == b.of:
            cut = replace(message, interrupted=b.cause, heard=b.heard)
            w.conversation = w.conversation.put(index, message=cut)
            break
    w.base_units = len(w.conversation.units)


def _paused(w: Working, e: Entry, b: kinds.TurnPaused) -> None:
    prefix = f"{e.turn}/{b.pending.key}/r"
    w.settle_open()
    running = [u for u in w.conversation.units.since(w.base_units) if isinstance(u, Round)]
    held = tuple(r for r in running if r.id.startswith(prefix))
    if w.acting is not None:
        held = (*held, w.acting)
    _flush(w, e, tuple(r for r in running if not r.revised and not r.id.startswith(prefix)))
    w.pending = replace(b.pending, rounds=held)


def _resumed(w: Working, e: Entry, b: kinds.TurnResumed) -> None:
    if w.pending is None or w.pending.turn != e.turn:
        raise RecordInvalid(f"turn {e.turn!r} is resumed but nothing of it is pending")
    rounds, w.proactive = w.pending.rounds, not isinstance(w.pending.input, Said)
    w.now, w.started_at = b.now, e.at
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
        for message in _messages(b.value or Raw(b"[]")):
            w.conversation = w.conversation.add(message)
    elif b.op == "edit":
        w.conversation = w.conversation.edit_result(b.message, b.call, _parts(b.value or Raw(b"[]")))
    elif b.op == "remove":
        w.conversation = w.conversation.put(w.conversation.index_of(b.message), message=None)
    else:
        w.conversation, w.data, w.pending, w.generation = Conversation(), {}, None, w.generation + 1
        w.slots = {f.name: f.start() for f in w.folds.all}
    w.base_units = len(w.conversation.units)


_CORE: dict[type[Body], Callable[[Working, Entry, Any], None]] = {
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


# ---- whole takes -----------------------------------------------------------------------------------------------------


def land(session: Session, entries: Sequence[Entry], folds: Folds = NO_FOLDS) -> Session:
    """Folds one whole take onto a session; only its end says which folds may read it.

    The same function lands a live take, a replayed one, and a take on a newer session.
    """
    end = entries[-1].body
    whole = isinstance(end, (kinds.TurnClosed, kinds.TurnPaused))
    working = Working(session, folds, whole=whole)
    for entry in entries:
        working.apply(entry)
    return working.session(len(entries))


def refold(key: SessionKey, entries: Iterable[Entry], folds: Folds = NO_FOLDS, *, digest_key: str = "") -> Session:
    """The session that a record tells of. A last take without an end is folded as a turn sees itself, live."""
    session = Session(key=key, digest_key=digest_key)
    for take in takes(entries):
        if isinstance(take[-1].body, kinds.ENDS):
            session = land(session, take, folds)
        else:
            working = Working(session, folds)
            for entry in take:
                working.apply(entry)
            working.settle_open()
            session = working.session(len(take))
    return session
