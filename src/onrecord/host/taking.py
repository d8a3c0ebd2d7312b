"""Taking one leased row: the turn, and the one commit that stores it and deletes the row.

What each end leaves (architecture, §7): closed and paused turns are stored whole; interrupted and refused ones store
what people saw; a model that failed before anything was shown stores nothing, and the row is due again; a row that
nobody can handle is parked. Nothing is final before its commit.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import Any

from msgspec.structs import replace

from onrecord.conversation.conversation import Conversation
from onrecord.conversation.identity import SessionKey
from onrecord.conversation.inputs import Answered, Happened, Input, Said, Started, Woke, row_key
from onrecord.conversation.outgoing import Outcome
from onrecord.errors import (
    LeaseLost,
    ModelError,
    OnrecordError,
    SessionConflict,
    StoreError,
    TurnError,
    TurnParked,
    UsageError,
)
from onrecord.host.amending import amend
from onrecord.host.forgetting import forget_overtaken
from onrecord.host.hot import HotSessions
from onrecord.host.row_options import decode_options
from onrecord.host.running import Running
from onrecord.host.setup import CRASHES, Given, Setup, agent_of, log
from onrecord.host.unfinished import after_conflict, parked_change
from onrecord.record.kinds import TurnFailed, TurnInterrupted
from onrecord.session.inbox import Row, lease_lost, outgoing_row, wake_row
from onrecord.session.session import Session
from onrecord.session.store import Change
from onrecord.turn.plan import Plan
from onrecord.turn.result import TurnResult
from onrecord.turn.take import Order, take

__all__ = ("GivenBack", "as_history", "take_row")

_CONFLICTS = 3
"""How often a take is begun anew because its session changed meanwhile."""

_HOPELESS = frozenset({"invalid", "content", "context"})
"""Kinds of ModelError that the same input meets again, however long one waits."""

_UNSTORABLE = frozenset({"store-change", "store-row"})
"""Codes of errors that tell of the turn, not of the store."""

_TROUBLE = timedelta(seconds=5)
"""How long a turn waits that its store could not keep."""

_INPUTS = (Said, Happened, Started, Woke, Answered)


class GivenBack(Exception):
    """The row goes back to the inbox; ``error`` is what the sender is told, if anything."""

    def __init__(self, error: Exception | None) -> None:
        super().__init__()
        self.error = error


async def take_row(setup: Setup, hot: HotSessions, running: Running) -> TurnResult[Any]:
    """Takes the row to its end. Raises what the sender is told; LeaseLost when nothing of it counts."""
    try:
        return await _to_its_end(setup, hot, running)
    except LeaseLost:
        raise
    except StoreError:
        await _give_back(setup, running.row)
        raise


async def _to_its_end(setup: Setup, hot: HotSessions, running: Running) -> TurnResult[Any]:
    row = running.row
    base = await _loaded(setup, hot, running)
    if row.attempt - row.clean > CRASHES:
        error = TurnParked(row.session.id, "out-of-attempts")
        raise await park(setup, hot, running, base, "out-of-attempts", error)
    if not isinstance(row.body, _INPUTS):
        return await _amended(setup, hot, running, base)
    for attempt in range(_CONFLICTS + 1):
        result, failure = await _taken(setup, hot, running, base, row.body)
        try:
            result = await _stored(setup, hot, running, result, _change(setup, row, result))
        except LeaseLost:
            await forget_overtaken(setup, row, base)
            raise
        except SessionConflict:
            await forget_overtaken(setup, row, base)
            hot.drop(row.session)
            base = await setup.store.load(row.session)
            if running.draft.was_read or attempt == _CONFLICTS:
                return await _ended_by_conflict(setup, hot, running, result, base)
            running.begin_again()
            continue
        except StoreError as error:
            if error.code in _UNSTORABLE:  # it would not fit the next time either
                raise await park(setup, hot, running, base, error.code, error) from None
            raise
        if failure is not None:
            failure.result = result
            raise failure
        return result
    raise AssertionError("a take ends or raises")


async def _amended(setup: Setup, hot: HotSessions, running: Running, base: Session | None) -> TurnResult[Any]:
    """An interruption of a closed turn, or a change of history. One that does not fit leaves nothing behind."""
    running.ended()
    for attempt in range(_CONFLICTS + 1):
        try:
            change, told = amend(running.row, base, setup)
        except UsageError:
            await setup.store.done(running.row)
            raise
        try:
            return await _stored(setup, hot, running, told, change)
        except SessionConflict:
            if attempt == _CONFLICTS:
                raise
            base = await setup.store.load(running.row.session)
    raise AssertionError("a change is stored or raises")


async def _give_back(setup: Setup, row: Row) -> None:
    """A store could not do its part: the turn is taken anew soon, if the host's can keep at least that.

    Nothing happens to a row that was parked or deleted.
    """
    with suppress(StoreError):
        await setup.store.again(row, due=setup.effects.now() + _TROUBLE, rung=row.rung, floor=row.floor)


async def _loaded(setup: Setup, hot: HotSessions, running: Running) -> Session | None:
    if running.is_loaded:
        return running.session
    return await setup.store.load(running.row.session, known=hot.get(running.row.session))


async def _taken(
    setup: Setup, hot: HotSessions, running: Running, base: Session | None, input: Input
) -> tuple[TurnResult[Any], TurnError | ModelError | None]:
    """One take. What is to be stored of it, and the error it ended with; or the row is given back or parked."""
    row = running.row
    try:
        plan = setup.plan_of(input, base)
        order = await _order(setup, running, plan, base, input)
        return await take(plan, order, setup.effects), None
    except ModelError as error:
        if error.result is not None:
            return error.result, error
        await _later(setup, hot, running, base, error)
        raise GivenBack(error) from None
    except TurnError as error:
        if error.result is not None:
            return error.result, error
        raise await park(setup, hot, running, base, error.code, error) from None
    except StoreError:
        raise
    except OnrecordError as error:  # called wrongly: the same input would meet it again
        raise await park(setup, hot, running, base, error.code, error) from None
    except Exception as error:  # noqa: BLE001 - `given` and the like are the application's: they may recover
        log.warning("a turn could not begin: %s", type(error).__name__, extra={"row": row.n})
        await _later(setup, hot, running, base, error)
        raise GivenBack(error) from None
    finally:
        running.ended()


async def _order(setup: Setup, running: Running, plan: Plan, base: Session | None, input: Input) -> Order:
    row, asked, draft = running.row, running.asked, running.draft
    given = Given[Any]() if setup.given is None else await setup.given(row.session, input)
    base_or_key: Session | SessionKey = row.session if base is None else base
    if given.owner is not None and base is None:
        base_or_key = Session(key=row.session, owner=given.owner, digest_key=setup.effects.nonce())
    elif given.owner is not None and base is not None and base.owner is None and _is_new(base):
        base_or_key = replace(base, owner=given.owner)
    own = asked.options or decode_options(row.options, plan.options)
    named = {type(option) for option in own}  # what an input came with stands; `given` adds what it did not say
    options = (*own, *(option for option in given.options if type(option) not in named))
    return Order(
        input=input, session=base_or_key, context=given.context if asked.context is None else asked.context,
        options=options, history=as_history(given.history if asked.history is None else asked.history),
        row=row.key, number=row.n, attempt=row.attempt, emit=draft.add, began=running.began,
        interrupted=running.due_interruption(base), was_read=lambda: draft.was_read, may_retry=bool(setup.retry),
        record=setup.store.entries,
    )  # fmt: skip


def _is_new(session: Session) -> bool:
    """Whether a conversation begins: that of somebody who was erased, or one with nothing but an import."""
    return not session.conversation.units or session.last_user_at is session.last_assistant_at is None


def as_history(history: Any) -> Conversation | None:
    """A caller's history. UsageError for what is none."""
    if history is None or isinstance(history, Conversation):
        return history
    from onrecord.conversation.transcript import messages_from

    return Conversation.of(messages_from(history))


def _change(setup: Setup, row: Row, result: TurnResult[Any]) -> Change | None:
    """What the commit stores: the turn, its wakes, and its messages where somebody delivers them."""
    if not result.changed:
        return None
    out = () if setup.deliver is None else tuple(outgoing_row(row.session, m) for m in result.messages)
    gone = (*result.disarmed, *(wake.replaces for wake in result.wakes if wake.replaces))
    agent = agent_of(row.body, result.base) if isinstance(row.body, _INPUTS) else ""
    put = (*(wake_row(row.session, wake, agent=agent) for wake in result.wakes), *out)
    return replace(result.change(), put=put, drop=tuple(row_key(Woke(key), "") for key in gone))


async def _stored(
    setup: Setup, hot: HotSessions, running: Running, result: TurnResult[Any], change: Change | None
) -> TurnResult[Any]:
    row = running.row
    if change is None:
        if not await setup.store.done(row):
            raise lease_lost(row)
        return result
    if _broke_off(setup, row, result):
        session = await _wake_kept(setup, row, result, change)
    else:
        session = await setup.store.commit(replace(change, taken=row))
    hot.put(session)
    return replace(result, session=session)


def _broke_off(setup: Setup, row: Row, result: TurnResult[Any]) -> bool:
    """Whether a wake that something waits for came to nothing, and nobody took it back: then it has to come again."""
    if not isinstance(row.body, Woke) or result.status not in {"interrupted", "failed", "refused"}:
        return False
    end = result.entries[-1].body
    if isinstance(end, TurnInterrupted) and end.cause == "cancelled":
        return False
    return setup.plan_of(row.body, result.base).keeps_wakes


async def _wake_kept(setup: Setup, row: Row, result: TurnResult[Any], change: Change) -> Session:
    """Stores what is left of the turn; the row is due again, or is parked when it has no more tries."""
    end, now = result.entries[-1].body, setup.effects.now()
    why = end.code if isinstance(end, TurnFailed) else result.status
    log.warning("the turn of a wake broke off: %s", why, extra={"row": row.n, "code": why})
    if row.rung >= len(setup.retry):
        return await setup.store.commit(replace(change, taken=row, parked=why))
    session = await setup.store.commit(change)
    due = now + timedelta(seconds=setup.retry[row.rung])
    if not await setup.store.again(row, due=due, rung=row.rung + 1, floor=row.floor):
        raise lease_lost(row)
    return session


async def _ended_by_conflict(
    setup: Setup, hot: HotSessions, running: Running, result: TurnResult[Any], newer: Session | None
) -> TurnResult[Any]:
    """The session changed under a turn whose text people have read: it ends interrupted, and its text stays theirs."""
    row = running.row
    kept = after_conflict(setup, row, result, newer)
    if kept is None:  # reset or erased meanwhile: nothing of it is wanted any more
        line = Outcome(kind="input", status="ignored", code="session-reset", key=row.key, message="taken too late")
        told = TurnResult[Any](status="ignored", session=newer, changed=False, base=newer, lines=(line,))
        return await _stored(setup, hot, running, told, None)
    return await _stored(setup, hot, running, kept, kept.change())


async def _later(setup: Setup, hot: HotSessions, running: Running, base: Session | None, error: Exception) -> None:
    """Gives the row back for a later try, or parks it when it has none left."""
    row, now = running.row, setup.effects.now()
    hopeless = isinstance(error, ModelError) and error.kind in _HOPELESS
    if hopeless or row.rung >= len(setup.retry):
        code = error.code if isinstance(error, OnrecordError) else "given-failed"
        raise await park(setup, hot, running, base, code if hopeless else "retries-used-up", error)
    rung, due = row.rung, row.retry_at
    if due is None or now >= due:  # else it was pulled forward by a new message, which costs it nothing
        rung, due = rung + 1, now + timedelta(seconds=setup.retry[rung])
    floor = _floor(error, now)
    due = due if floor is None else max(due, floor)
    if not await setup.store.again(row, due=due, rung=rung, floor=floor):
        raise lease_lost(row)


def _floor(error: Exception, now: Any) -> Any:
    """The instant before which the provider wants no other call."""
    if not isinstance(error, ModelError):
        return None
    waits = []
    if error.retry_after is not None:
        with suppress(OverflowError, ValueError):  # a model of an application may say anything
            waits.append(now + timedelta(seconds=error.retry_after))
    return max([*waits, *([] if error.reset_at is None else [error.reset_at])], default=None)


async def park(
    setup: Setup, hot: HotSessions, running: Running, base: Session | None, why: str, error: Exception
) -> Exception:
    """Sets the row aside, and says so in the record. What the sender is told."""
    row = running.row
    running.ended()
    log.warning("a row was parked: %s", why, extra={"row": row.n, "code": why})
    try:
        session = await setup.store.commit(parked_change(setup, row, base, why, error))
        running.is_filed = True
        hot.put(session)
    except SessionConflict:  # the record goes on elsewhere; setting the row aside matters more than saying so
        hot.drop(row.session)
        if not await setup.store.park(row, why=why):
            raise lease_lost(row) from None
    return error
