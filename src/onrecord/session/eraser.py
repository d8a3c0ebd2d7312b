"""Erasing in a store: which sessions, in which order, and what is written. The same for every store.

A store gives `Cells`, what it holds at one moment, to functions that it runs one after another, each a transaction. A
session is looked at in one of them and rewritten in the next, so that writers wait for the writing alone; where
somebody committed in between, it is looked at again, at last within the transaction that writes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from onrecord.conversation.identity import Identity, SessionKey
from onrecord.conversation.inputs import below_key
from onrecord.errors import StoreError
from onrecord.record.entry import Entry
from onrecord.session.erasing import (
    Rewritten,
    Told,
    asked,
    blank,
    check_kinds,
    erased_entry,
    is_blank,
    named_turns,
    old_turns,
    without,
)
from onrecord.session.erasure import Erasure, Retention, ago
from onrecord.session.inbox import Row
from onrecord.session.leftovers import Leftovers, armed_elsewhere
from onrecord.session.let_go import waiting_below
from onrecord.session.session import Session

__all__ = ("AT_ONCE", "Age", "Bare", "Cells", "Step", "erase", "expire")

T = TypeVar("T")

AT_ONCE = 200
"""Rows, entries or sessions that one transaction of `expire` takes at most."""

EXPIRED = "its time was over"
"""Why entries were erased by age."""

_TRIES = 3


class Age(Struct, frozen=True):
    """When things happened in a session: the last of them, and the first that is not erased (None: all is)."""

    session: SessionKey
    last: datetime
    first_left: datetime | None


class Bare(Struct, frozen=True):
    """A session with nothing in it but what names it and counts, and how many messages it has."""

    session: Session
    messages: int

    @property
    def head(self) -> tuple[int, int, int]:
        """Where it stands."""
        return self.session.version, self.session.generation, self.session.seq


class Cells(Protocol):
    """What a store holds, within one transaction."""

    @property
    def now(self) -> datetime: ...

    def fresh_key(self) -> str:
        """A key for digests that nobody can guess."""
        ...

    def bare(self, key: SessionKey) -> Bare | None:
        """The session without its content; also where that does not decode."""
        ...

    def told(self, key: SessionKey) -> tuple[Session, list[Entry]] | None:
        """The session and its record. StoreError where either does not decode."""
        ...

    def left(self, key: SessionKey) -> list[Entry]:
        """The entries of a session that are not erased. What does not decode is an `UnknownBody`."""
        ...

    def of_kinds(self, key: SessionKey, before: dict[str, datetime], after: int, limit: int) -> list[Entry]:
        """Entries of these kinds from before these instants, in order, behind the one of the number ``after``."""
        ...

    def owned(self, who: Identity) -> list[SessionKey]:
        """The sessions of a person."""
        ...

    def below(self, key: SessionKey) -> list[SessionKey]:
        """The sessions of sub-turns below this one."""
        ...

    def ages(self, after: SessionKey | None, limit: int) -> list[Age]:
        """Sessions of all tenants with entries in them, in some order that lasts, behind ``after``."""
        ...

    def waits(self, key: SessionKey) -> bool:
        """Whether something of the session is to be handled or delivered, parked rows aside."""
        ...

    def write(self, session: Session, entries: Sequence[Entry]) -> None:
        """A session in its next version, with these entries: in place of those of their numbers, or behind the last."""
        ...

    def rewrite(self, key: SessionKey, entries: Sequence[Entry]) -> None:
        """Entries in place of those of their numbers; the session stays."""
        ...

    def drop(self, key: SessionKey, matches: Callable[[Row], bool] | None) -> int:
        """Deletes rows of a session, leased or not (None: all, also what does not decode). How many."""
        ...

    def put_back(self, key: SessionKey, change: Callable[[Row], Row]) -> None:
        """Stores the rows of a session that come back changed: their bodies and leases."""
        ...

    def drop_parked(self, before: datetime, limit: int) -> int:
        """Deletes up to ``limit`` parked rows that were due before this instant. How many."""
        ...


class Step(Protocol):
    """Runs a function over a store's cells as one transaction."""

    async def __call__(self, act: Callable[[Cells], T], /, *, writes: bool = True) -> T: ...


# ---- erase -----------------------------------------------------------------------------------------------------------


async def erase(
    step: Step, what: SessionKey | Identity | str, messages: Sequence[str] | None, why: str
) -> Erasure:  # fmt: skip
    """What `Store.erase` promises."""
    named, ids = asked(what, messages, why)
    if isinstance(named, Identity):
        done = Erasure()
        for key in await step(lambda cells: cells.owned(named), writes=False):
            done += await step(partial(_erase_session, key=key, why=why, disown=True))
        return done
    if ids is None:
        return await step(partial(_erase_session, key=named, why=why))
    look = partial(_look, key=named, choose=lambda told: named_turns(told, ids), why=why, keeps_state=False)
    return await _rewritten(step, look)


def _erase_session(
    cells: Cells, key: SessionKey, why: str, *, disown: bool = False, keeps_wakes: bool = False
) -> Erasure:  # fmt: skip
    """A session with those below it, at once: what a sub-turn says is said in its parent's name."""
    keys = (*cells.below(key), key)
    done = Erasure(gone=keys)
    for each in keys:
        done += _erase_one(cells, each, why, disown=disown, keeps_wakes=keeps_wakes)
    return done


def _erase_one(
    cells: Cells, key: SessionKey, why: str, *, disown: bool = False, keeps_wakes: bool = False
) -> Erasure:  # fmt: skip
    """With ``keeps_wakes`` what it armed for other sessions is still to happen there."""
    rows, bare = cells.drop(key, None), cells.bare(key)
    if bare is None:
        return Erasure(rows=rows)
    session, left = bare.session, cells.left(key)
    if not keeps_wakes:
        armed = armed_elsewhere(key, left)
        for other in {of for of, _ in armed}:
            rows += cells.drop(other, lambda row: row.box == "in" and (row.session, row.key) in armed)
    if not bare.messages and is_blank([entry.body for entry in left]) and not (disown and session.owner):
        return Erasure(rows=rows)
    if disown:
        session = replace(session, owner=None)
    after, added = blank(session, why=why, at=cells.now, digest_key=cells.fresh_key())
    cells.write(after, [*(erased_entry(entry, why, cells.now) for entry in left), *added])
    return Erasure(sessions=1, messages=bare.messages, entries=len(left), rows=rows)


class _Plan(Struct, frozen=True):
    """What becomes of a session as it stood at ``head``."""

    key: SessionKey
    head: tuple[int, int, int]
    rewritten: Rewritten
    leftovers: Leftovers | None
    messages: int
    turns: tuple[str, ...]
    why: str


async def _rewritten(step: Step, look: Callable[[Cells], _Plan | None]) -> Erasure:
    for _ in range(_TRIES):
        plan = await step(look, writes=False)
        if plan is None:
            return Erasure()
        done = await step(partial(_carry_out, plan=plan))
        if done is not None:
            return done

    def at_once(cells: Cells) -> Erasure:
        plan = look(cells)
        return Erasure() if plan is None else _carry_out(cells, plan) or Erasure()

    return await step(at_once)


def _look(
    cells: Cells, key: SessionKey, choose: Callable[[Told], frozenset[str]], why: str, *, keeps_state: bool
) -> _Plan | None:
    """What erasing some turns makes of a session. None: it has none of them."""
    found = cells.told(key)
    if found is None:
        return None
    session, entries = found
    told = Told.of(session, entries)
    turns = choose(told)
    if not turns:
        return None
    made = without(told, turns, why=why, at=cells.now, digest_key=cells.fresh_key(), keeps_state=keeps_state)
    # What a turn armed is still to happen when the turn's own time is over; not so when somebody wants it erased.
    leftovers = None if keeps_state else Leftovers.of(told, turns)
    messages = len(session.conversation.messages) - len(made.session.conversation.messages)
    named = () if keeps_state else tuple(sorted(turns))  # of those whose time is over nobody asks
    return _Plan(key, Bare(session, 0).head, made, leftovers, messages, named, why)


def _carry_out(cells: Cells, plan: _Plan) -> Erasure | None:
    """Writes what was planned. None: the session is another by now."""
    key, made = plan.key, plan.rewritten
    bare = cells.bare(key)
    if bare is None or bare.head != plan.head:
        return None
    cells.write(made.session, [*made.changed, *made.added])
    rows = 0
    if plan.leftovers is not None:
        for other in {key, *(of for of, _ in plan.leftovers.wakes)}:
            rows += cells.drop(other, plan.leftovers.hold)
        cells.put_back(key, plan.leftovers.without_preview)
    done = Erasure(messages=plan.messages, entries=made.erased, rows=rows, turns=plan.turns)
    for child in cells.below(key):
        if any(child.id.startswith(below_key(key, f"{turn}/").id) for turn in made.gone):
            done += _erase_one(cells, child, plan.why, keeps_wakes=plan.leftovers is None) + Erasure(gone=(child,))
    return done


# ---- expire ----------------------------------------------------------------------------------------------------------


async def expire(step: Step, policy: Retention) -> Erasure:
    """What `Store.expire` promises."""
    check_kinds(policy)
    done, after = Erasure(), None
    if policy.sessions is not None or policy.entries is not None or policy.kinds:
        while True:
            page = await step(partial(_ages, after=after), writes=False)
            for age in page:
                done += await _expire_session(step, policy, age)
            if len(page) < AT_ONCE:
                break
            after = page[-1].session
    if policy.rows is not None:
        done += await _expire_rows(step, policy.rows)
    return done


def _ages(cells: Cells, after: SessionKey | None) -> list[Age]:
    return cells.ages(after, AT_ONCE)


async def _expire_session(step: Step, policy: Retention, age: Age) -> Erasure:
    if age.first_left is None:
        return Erasure()
    now, done = await step(lambda cells: cells.now, writes=False), Erasure()
    idle_since, before = _since(now, policy.sessions), _since(now, policy.entries)
    is_due = age.last < idle_since or age.first_left < before
    if is_due and not await step(partial(_is_held, key=age.session), writes=False):
        if age.last < idle_since:
            idle = await step(partial(_expire_idle, key=age.session, before=idle_since))
            if idle is not None:
                return idle
        if age.first_left < before:
            choose = partial(old_turns, before=before)
            look = partial(_look, key=age.session, choose=choose, why=EXPIRED, keeps_state=True)
            done += await _rewritten(step, look)
    if policy.kinds:
        done += await _expire_kinds(step, age.session, {kind: ago(now, kept) for kind, kept in policy.kinds.items()})
    return done


def _since(now: datetime, age: timedelta | None) -> datetime:
    """Before when things are too old; nothing is, where they are kept for ever."""
    return ago(now, timedelta.max if age is None else age)


def _is_held(cells: Cells, key: SessionKey) -> bool:
    """Whether the open question of the session above waits with this one: then it is as old as that, and goes with it.

    What does not decode holds nothing and is not held.
    """
    bare = cells.bare(key)
    if bare is None or bare.session.parent is None:
        return False
    try:
        found = cells.told(key)
        if found is None or found[0].pending is None:
            return False
        above = cells.told(SessionKey(bare.session.parent, tenant=key.tenant))
        return above is not None and any(child.key == key for child in waiting_below(above[0]))
    except StoreError:
        return False


def _expire_idle(cells: Cells, key: SessionKey, before: datetime) -> Erasure | None:
    """Erases a session in which nothing happened since. None: something did, or waits to."""
    left = cells.left(key)
    if cells.waits(key) or any(entry.at >= before for entry in left):
        return None
    return _erase_session(cells, key, EXPIRED, keeps_wakes=True)


async def _expire_kinds(step: Step, key: SessionKey, before: dict[str, datetime]) -> Erasure:
    def some(cells: Cells, after: int) -> list[Entry]:
        found = cells.of_kinds(key, before, after, AT_ONCE)
        cells.rewrite(key, [erased_entry(entry, EXPIRED, cells.now) for entry in found])
        return found

    done, after = Erasure(), -1
    if not await step(lambda cells: cells.of_kinds(key, before, after, 1), writes=False):
        return done
    while found := await step(partial(some, after=after)):
        done, after = done + Erasure(entries=len(found)), found[-1].seq
    return done


async def _expire_rows(step: Step, age: timedelta) -> Erasure:
    rows = 0
    while (dropped := await step(lambda cells: cells.drop_parked(ago(cells.now, age), AT_ONCE))) > 0:
        rows += dropped
    return Erasure(rows=rows)
