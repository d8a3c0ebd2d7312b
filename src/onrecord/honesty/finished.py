"""Which turns of a session are finished, and where their entries stand: all that self-explanation remembers."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from onrecord.record.entry import Entry
from onrecord.record.kinds import TurnClosed, TurnFailed, TurnInterrupted, TurnOpened

__all__ = ("FINISHED", "MOST_TURNS", "Finished", "FinishedFold", "Turns")

MOST_TURNS = 20
"""How many finished turns are remembered."""

_MOST_OPEN = 8


class Finished(Struct, frozen=True, kw_only=True):
    """A turn and the numbers of its first and last entry; entries of other turns may lie between."""

    turn: str
    first: int
    last: int = 0


class Turns(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Turns that have ended, the last one last; and those that have begun: the running one, and what waits."""

    done: tuple[Finished, ...] = ()
    begun: tuple[Finished, ...] = ()


class FinishedFold:
    """Makes `Turns` of where turns begin and end, also of those that were interrupted or failed."""

    name = "self_explain"
    version = 1
    state = Turns
    kinds = frozenset({"turn.opened", "turn.closed", "turn.failed", "turn.interrupted"})
    scope: Literal["session", "turn"] = "session"
    unfinished = True

    def start(self) -> Turns:
        return Turns()

    def apply(self, state: Turns, entry: Entry, /) -> Turns:
        body = entry.body
        if isinstance(body, TurnOpened):
            begun = (*state.begun, Finished(turn=entry.turn, first=entry.seq))
            return replace(state, begun=begun[-_MOST_OPEN:])
        return _ended(state, entry) if isinstance(body, (TurnClosed, TurnFailed, TurnInterrupted)) else state


def _ended(state: Turns, entry: Entry) -> Turns:
    ended = [replace(one, last=entry.seq) for one in state.begun if one.turn == entry.turn]
    if not ended:
        return state
    done = (*state.done, ended[-1])
    return Turns(done=done[-MOST_TURNS:], begun=tuple(one for one in state.begun if one.turn != entry.turn))


FINISHED = FinishedFold()
