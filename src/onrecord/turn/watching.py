"""Watchers: they look at every entry and decide nothing; what they raise is contained and noted."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from onrecord.errors import OnrecordError
from onrecord.record.entry import Entry
from onrecord.record.kinds import ENDS, Noted
from onrecord.record.leaving import leaving
from onrecord.turn.contained import ends_take
from onrecord.turn.moments import Left

if TYPE_CHECKING:
    from onrecord.turn.turn import Turn

__all__ = ("leave", "show", "wait")


def show(turn: Turn, entry: Entry) -> None:
    """Shows an entry to every watcher, as it leaves the record. Those ``awaited`` are waited for before the end.

    What a redaction that fails was to look at is shown to nobody.
    """
    try:
        entry = leaving(entry, turn.plan.redact)
    except Exception as error:  # noqa: BLE001 - looking on must never end a turn
        _failed(turn, "redaction", error, entry)
        return
    for watch in turn.plan.watch:
        turn.looking = True
        try:
            seen = watch.see(entry)
        except Exception as error:  # noqa: BLE001 - looking on must never end a turn
            turn.looking = False
            _failed(turn, watch.name, error, entry)
            continue
        finally:
            turn.looking = False
        if watch.awaited:
            turn.owed.append((watch.name, seen, entry))


async def wait(turn: Turn) -> None:
    """Waits for every awaited watcher to have seen the entries so far, in their order."""
    while turn.owed:
        name, seen, entry = turn.owed.pop(0)
        turn.looking = True
        try:
            await seen
        except BaseException as error:
            if ends_take(error):
                raise
            turn.looking = False
            _failed(turn, name, error, entry)
        finally:
            turn.looking = False


def leave(turn: Turn, error: BaseException | None) -> None:
    """Lets go of what awaited watchers have not seen, and tells all of a take that is left without an end."""
    for _, seen, _ in turn.owed:
        end = getattr(seen, "close", None) or getattr(seen, "cancel", None)
        if end is not None:
            end()
    if not turn.entries or isinstance(turn.entries[-1].body, ENDS):
        return
    raised = "" if error is None else type(error).__name__
    code = error.code if isinstance(error, OnrecordError) else ""
    left = Left(turn=turn.id, take=turn.take, at=turn.effects.now(), error=raised, code=code)
    for watch in turn.plan.watch:
        if watch.left is not None:
            with suppress(Exception):  # nothing can be noted any more
                watch.left(left)


def _failed(turn: Turn, name: str, error: BaseException, entry: Entry) -> None:
    if isinstance(entry.body, Noted) and entry.body.by == name:
        return  # a watcher that cannot even see this note is left alone
    if isinstance(turn.entries[-1].body, ENDS):
        return  # nothing follows the end of a take
    turn.note(Noted(by=name, text=f"watcher failed: {type(error).__name__}"), cause=entry.n)
