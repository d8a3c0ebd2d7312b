"""Wakes that came to nothing: their turn was stopped or failed, so whoever waits for them would wait for ever."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from onrecord.conversation.inputs import Woke
from onrecord.record.entry import Entry
from onrecord.record.kinds import (
    TurnClosed,
    TurnFailed,
    TurnInput,
    TurnInterrupted,
    TurnOpened,
    TurnPaused,
    TurnResumed,
    WakeArmed,
)

__all__ = ("KEPT_LOST", "LOST", "LostWakes", "LostWakesFold")

KEPT_LOST = 50
"""How many such wakes a session remembers; who waits for one is found by the next turn, so there are hardly any."""

BODIES = (TurnOpened, TurnResumed, TurnInput, WakeArmed, TurnClosed, TurnPaused, TurnInterrupted, TurnFailed)


class LostWakes(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``keys`` are wakes that fired in vain and were not armed since.

    Of the turn at hand: ``firing`` is the wake that it began with, ``armed`` are those of ``keys`` that it armed.
    """

    keys: tuple[str, ...] = ()
    firing: str = ""
    armed: tuple[str, ...] = ()


class LostWakesFold:
    """Which wakes are to be armed again, since the turn that they began was interrupted or failed."""

    name = "flows_lost"
    version = 1
    state = LostWakes
    kinds = frozenset(str(body.__struct_config__.tag) for body in BODIES)
    scope: Literal["session", "turn"] = "session"
    unfinished = True

    def start(self) -> LostWakes:
        return LostWakes()

    def apply(self, state: LostWakes, entry: Entry, /) -> LostWakes:
        body = entry.body
        if isinstance(body, TurnInput):
            return LostWakes(keys=state.keys, firing=body.input.key) if isinstance(body.input, Woke) else state
        if isinstance(body, WakeArmed):
            if body.wake.key not in state.keys:
                return state
            return LostWakes(keys=state.keys, firing=state.firing, armed=(*state.armed, body.wake.key))
        if not state.firing and not state.armed:
            return state
        if isinstance(body, (TurnClosed, TurnPaused)):
            return LostWakes(keys=tuple(key for key in state.keys if key not in state.armed))
        came_to_nothing = isinstance(body, TurnFailed) or (isinstance(body, TurnInterrupted) and body.of == entry.turn)
        if came_to_nothing and state.firing and state.firing not in state.keys:
            return LostWakes(keys=(*state.keys, state.firing)[-KEPT_LOST:])
        return LostWakes(keys=state.keys)


LOST = LostWakesFold()
