"""Wakes that came to nothing: their turn was stopped or failed, so whoever waits for them would wait for ever."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from onrecord.conversation.inputs import Woke
from onrecord.record.entry import Entry
from onrecord.record.kinds import TurnClosed, TurnFailed, TurnInput, TurnInterrupted, TurnOpened, TurnPaused

__all__ = ("LOST", "LostWakes", "LostWakesFold")


class LostWakes(Struct, frozen=True, omit_defaults=True):
    """``keys`` are wakes that fired in vain; ``firing`` is the one that the turn at hand began with."""

    keys: tuple[str, ...] = ()
    firing: str = ""


class LostWakesFold:
    """Which wakes a turn must arm again: those of turns that did not end since the last one that did."""

    name = "flows_lost"
    version = 1
    state = LostWakes
    kinds = frozenset({"turn.opened", "turn.input", "turn.closed", "turn.paused", "turn.interrupted", "turn.failed"})
    scope: Literal["session", "turn"] = "session"
    unfinished = True

    def start(self) -> LostWakes:
        return LostWakes()

    def apply(self, state: LostWakes, entry: Entry, /) -> LostWakes:
        body = entry.body
        if isinstance(body, TurnInput):
            return LostWakes(state.keys, body.input.key) if isinstance(body.input, Woke) else state
        if isinstance(body, (TurnClosed, TurnPaused)):
            return LostWakes() if state.keys or state.firing else state
        if not state.firing:
            return state
        if isinstance(body, TurnFailed) or (isinstance(body, TurnInterrupted) and body.of == entry.turn):
            return LostWakes((*state.keys, state.firing))
        return LostWakes(state.keys) if isinstance(body, TurnOpened) else state


LOST = LostWakesFold()
