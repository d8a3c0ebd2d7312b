"""Sub-turns that waited for an answer when the turn above them ended: their sessions end with it."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from onrecord.conversation.inputs import below_key
from onrecord.session.let_go import closed_below, is_waiting, waiting_below
from onrecord.session.session import Session
from onrecord.turn.result import TurnResult
from onrecord.turn.turn import Turn

__all__ = ("let_go_below",)


async def let_go_below(turn: Turn) -> None:
    """Closes whatever waited below and is not held by the question that this take ends with."""
    before = turn.session.pending
    if not turn.children and (before is None or not before.children):
        return
    held = set() if turn.pending is None else {below_key(turn.session.key, call) for call in turn.paused_children}
    turn.children[:] = [
        child if child.status != "paused" or child.session is None or child.session.key in held
        else await _closed(turn, child, child.session)
        for child in turn.children
    ]  # fmt: skip
    held |= {child.session.key for child in turn.children if child.session is not None}
    turn.children += [gone for child in waiting_below(turn.session) if child.key not in held
                      for gone in await _let_go(turn, child)]  # fmt: skip


async def _let_go(turn: Turn, child: Session) -> list[TurnResult[Any]]:
    """What closes a session that a take before left waiting; nothing where somebody else changed it meanwhile."""
    if not await is_waiting(child, turn.record):
        return []
    waited = TurnResult[Any](status="paused", session=child, changed=True, base=child)
    return [await _closed(turn, waited, child)]


async def _closed(turn: Turn, child: TurnResult[Any], session: Session) -> TurnResult[Any]:
    """A sub-turn that waits, closed in the same change; and those below it."""
    after, entries = closed_below(session, turn.now)
    known = {below.session.key for below in child.children if below.session is not None}
    children = [
        below if below.status != "paused" or below.session is None else await _closed(turn, below, below.session)
        for below in child.children
    ]
    for below in waiting_below(session):
        if below.key not in known:
            children += await _let_go(turn, below)
    return replace(
        child, status="interrupted", session=after, entries=(*child.entries, *entries), question=None, private={},
        children=tuple(children),
    )  # fmt: skip
