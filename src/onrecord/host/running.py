"""Running: a row that this host is taking at this moment; Ticket: what somebody who sent an input holds."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Generic

from msgspec import Struct

from onrecord.conversation.identity import Identity, SessionKey
from onrecord.conversation.inputs import Interruption
from onrecord.conversation.outgoing import Delta
from onrecord.host.hot import is_about
from onrecord.host.leased import STOPPING_S, Leased, tell_stuck
from onrecord.host.live import Draft
from onrecord.session.inbox import Row
from onrecord.session.session import Session
from onrecord.turn.result import O, TurnResult
from onrecord.turn.turn import SETTLE_S, Turn

__all__ = ("Asked", "Running", "Ticket")


class Asked(Struct, frozen=True, kw_only=True):
    """What the sender of an input gave beside it. It wins over ``given`` for takes in this process."""

    context: object = None
    options: tuple[object, ...] = ()
    history: Any = None
    emit: Callable[[Delta], None] | None = None


class Running(Leased):
    """One row of the inbox, until its commit. One task takes it; the heartbeat and `Host.interrupt` reach in."""

    __slots__ = ("asked", "draft", "interruption", "is_filed", "is_loaded", "session", "turn")

    def __init__(self, row: Row, session: Session | None, asked: Asked, *, is_loaded: bool) -> None:
        super().__init__(row)
        self.session, self.asked, self.is_loaded = session, asked, is_loaded
        self.draft = Draft()
        if asked.emit is not None:
            self.draft.listen(asked.emit)
        self.turn: Turn | None = None
        self.interruption = row.cancel
        self.is_filed = False  # whether the record holds something of it, though not the take

    @property
    def is_new(self) -> bool:
        """Whether its turn is the first of a session, which is not stored yet."""
        return self.turn is not None and self.turn.session.version == 0

    def is_about(self, what: SessionKey | Identity) -> bool:
        """Whether it takes place in that session, or in one of that person."""
        return is_about(what, self.row.session, self.base)

    def began(self, turn: Turn) -> None:
        """The take has opened its turn."""
        self.turn, self.has_ended = turn, False
        self.draft.turn, self.draft.take = turn.id, turn.take

    def ended(self) -> None:
        """The take is over; what it came to is being stored."""
        self.turn, self.has_ended = None, True

    def begin_again(self) -> None:
        """Nothing of the take was stored, and nobody read of it: it is taken anew."""
        self.has_ended = False
        self.draft.deltas.clear()

    @property
    def base(self) -> Session | None:
        """The session that the take began with, as far as it is known by now."""
        return self.session if self.turn is None else self.turn.session

    def interrupt(self, by: Interruption) -> bool:
        """Stops the take, also one that is about to begin; False where it has ended, or is stopped already.

        False too for one that the session knows: it stopped a turn before this one.
        """
        if self.has_ended or self.interruption is not None or _was_seen(by, self.base):
            return False
        if self.turn is not None and not self.turn.interrupt(by):
            return False
        self.interruption = by  # a take that begins anew is stopped too
        # A call that may have effects is given its own time first.
        given_s = SETTLE_S if self.turn is not None and self.turn.shielded else 0.0
        asyncio.get_running_loop().call_later(given_s + STOPPING_S, self._tell_if_stuck, self.turn)
        return True

    def _tell_if_stuck(self, turn: Turn | None) -> None:
        if turn is not None and turn is self.turn:
            tell_stuck(self.row, "was interrupted")

    def due_interruption(self, base: Session | None) -> Interruption | None:
        """What stops the take once it has begun, unless it stopped a turn before this one."""
        by = self.interruption
        return None if by is None or _was_seen(by, base) else by

    def is_stopped_by(self, by: Interruption) -> bool:
        """Whether it was this interruption that stopped the take."""
        return self.interruption is not None and self.interruption.id == by.id


def _was_seen(by: Interruption, base: Session | None) -> bool:
    """Whether this stopped a turn before. A message that supersedes others stops as many as there are."""
    return base is not None and by.cause != "superseded" and by.id in base.interruptions


class Ticket(Generic[O]):
    """An accepted input. ``is_new`` is False when a row of this key was there before: then this is its ticket too.

    `result` waits for the turn, whichever process takes it; dropping the ticket changes nothing.
    """

    def __init__(
        self, row: Row, ended: asyncio.Future[TurnResult[Any]], withdraw: Callable[[], Awaitable[bool]], *, is_new: bool
    ) -> None:
        self.session, self.key, self.number, self.is_new = row.session, row.key, row.n, is_new
        self._ended, self._withdraw = ended, withdraw

    async def result(self) -> TurnResult[O]:
        """What the turn came to. Raises what `Agent.turn` raises, and TurnParked when its row was set aside."""
        return await asyncio.shield(self._ended)

    async def cancel(self) -> bool:
        """Takes the input back: one that waits is deleted, a running turn is interrupted. False when it is too late."""
        return await self._withdraw()

    @property
    def is_done(self) -> bool:
        """Whether the turn has ended."""
        return self._ended.done()

    def __repr__(self) -> str:
        return f"Ticket({self.session.id!r}, number={self.number}, is_new={self.is_new})"
