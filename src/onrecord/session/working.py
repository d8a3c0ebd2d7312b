"""Working: the state of a session while one take is folded into it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from onrecord.conversation.content import Mark, Text
from onrecord.conversation.conversation import Conversation
from onrecord.conversation.messages import Block, ContextMessage, Round
from onrecord.errors import RecordInvalid, UsageError
from onrecord.record.entry import Entry
from onrecord.record.fold import Fold
from onrecord.session.codec import slot_value
from onrecord.session.session import Session, SlotState

__all__ = ("NO_FOLDS", "Folds", "Working")


class Folds:
    """Feature folds, compiled once: which read an entry of which kind."""

    def __init__(self, folds: Iterable[Fold[Any]] = ()) -> None:
        self.all = tuple(folds)
        self.of_turns = frozenset(f.name for f in self.all if f.scope == "turn")
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
        "acting", "base", "base_units", "behind", "blocks", "completed_at", "conversation", "data", "filed", "folds",
        "generation", "inputs", "interruptions", "last_assistant_at", "last_user_at", "late", "now", "open", "others",
        "outside", "paused", "pending", "proactive", "shown", "slots", "slots_kept", "started_at", "whole",
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
        self.behind: tuple[ContextMessage, ...] = ()
        self.late: tuple[ContextMessage, ...] = ()
        self.others, self.paused, self.slots_kept = session.slots, False, False
        self.now: datetime | None = None
        self.started_at: datetime | None = None
        self.completed_at: datetime | None = None
        self.proactive = False

    def fold_features(self, entry: Entry, kind: object) -> None:
        """Folds one entry into the slots of the features that read its kind."""
        if self.slots_kept:
            return
        for fold in self.folds.by_kind.get(kind, ()):
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
        slots = self.others
        if self.folds.all:
            slots = {**slots, **self._slots()}
            if self.pending is None:
                slots = {name: slot for name, slot in slots.items() if name not in self.folds.of_turns}
        return Session(
            key=base.key, version=base.version, generation=self.generation, seq=base.seq + entries, owner=base.owner,
            parent=base.parent, data=self.data, inputs=self.inputs, interruptions=self.interruptions,
            pending=self.pending, last_user_at=self.last_user_at, last_assistant_at=self.last_assistant_at,
            slots=slots, digest_key=base.digest_key, filed=self.filed,
            conversation=self.conversation if self.outside is None else self.outside,
        )  # fmt: skip

    def _slots(self) -> dict[str, SlotState]:
        """What the mounted folds leave: those of a turn only while it is paused."""
        return {
            f.name: SlotState(f.version, self.slots[f.name], getattr(f, "quotes", False))
            for f in self.folds.all
            if f.scope == "session" or self.paused
        }

    def resume_slots(self) -> None:
        """Folds of the turn that goes on stand where its pause left them."""
        for fold in self.folds.all:
            if fold.scope == "turn":
                self.slots[fold.name] = _held(self.base, fold)

    def keep_slots(self, slots: Mapping[str, SlotState]) -> None:
        """The states of features are these, whatever else this take says; one of another version begins anew."""
        self.others, self.slots_kept = slots, True
        for fold in self.folds.all:
            held = slots.get(fold.name)
            same = held is not None and held.version == fold.version and fold.scope == "session"
            self.slots[fold.name] = slot_value(held, fold.state) if same and held is not None else fold.start()

    def settle_open(self) -> None:
        """The open round becomes a unit: what follows sees it, and it changes no more."""
        if self.open is not None:
            self.conversation = self.conversation.grow(self.open)
            self.open = None
        while self.behind:
            self.add_context(self.behind[0])
            self.behind = self.behind[1:]

    def add_context(self, message: ContextMessage) -> None:
        """Text of the application behind everything so far; among the rounds of a take it stands before its message."""
        running = len(self.conversation.units) > self.base_units
        self.conversation = self.conversation.add(message)
        if running:
            self.late = (*self.late, message)
        else:
            self.base_units = len(self.conversation.units)


def _slot(session: Session, fold: Fold[Any]) -> Any:
    return fold.start() if fold.scope == "turn" else _held(session, fold)


def _held(session: Session, fold: Fold[Any]) -> Any:
    held = session.slots.get(fold.name)
    if held is None:
        return fold.start()
    if held.version != fold.version:
        raise UsageError(
            f"session {session.key.id!r} holds version {held.version} of {fold.name!r}, this agent folds version "
            f"{fold.version}",
            hint="fold the session's record again: onrecord.session.refold(session.key, entries, folds)",
        )
    return slot_value(held, fold.state)
