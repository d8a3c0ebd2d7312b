"""Random work with rows, done to several stores at once and judged by what must never happen."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from msgspec.structs import replace

from onrecord.conversation.identity import SessionKey
from onrecord.conversation.inputs import Answered, Happened, Interruption, Said, Woke
from onrecord.conversation.outgoing import Outgoing, Wake
from onrecord.errors import LeaseLost, SessionConflict, StoreError
from onrecord.record.kinds import HistoryChanged
from onrecord.session.inbox import Accepted, Box, Busy, Lease, Row, comes_first, is_message, outgoing_row, wake_row
from onrecord.session.session import Session
from onrecord.session.store import Change, Store
from onrecord.testing.conformance.asking import SetClock
from onrecord.testing.conformance.samples import row, turn

__all__ = ("RowMachine",)

SESSIONS = (SessionKey("a"), SessionKey("a", tenant="t"))
BOXES: tuple[Box, ...] = ("in", "out")
TTL = 30.0

sessions, boxes, owners = st.sampled_from(SESSIONS), st.sampled_from(BOXES), st.sampled_from(("w1", "w2"))
names = st.sampled_from("klmn")
seconds = st.sampled_from((-40, -1, 0, 1, 20, 60))
busy: st.SearchStrategy[Busy] = st.sampled_from(("queue", "queue", "supersede", "reject"))
maybe_seconds = st.none() | seconds
bodies = st.one_of(
    names.map(Said),
    names.map(Said),
    names.map(Answered),
    names.map(lambda key: Happened("paid", key=key)),
    names.map(Woke),
    names.map(lambda key: Interruption(id=key)),
    names.map(lambda key: HistoryChanged(op="edit", by=key)),
    st.builds(lambda key, ms: Outgoing(key=key, text="hi", after_ms=ms), names, st.sampled_from((0, 0, 15_000))),
)
Name = tuple[SessionKey, Box, str]
Place = tuple[SessionKey, Box]


class RowMachine(RuleBasedStateMachine):
    """What must hold, kept beside the stores: which rows there are, and whose lease is good.

    Every store is asked the same and must say the same. Of what the first one says, the model checks that one session
    has one holder, that nothing accepted goes but by its holder or by being withdrawn, and that messages come in order.
    """

    makers: Sequence[Callable[..., Store]] = ()

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.clock = SetClock()
        self.stores = [make(clock=self.clock) for make in self.makers]
        self.numbers: list[dict[int, int]] = [{} for _ in self.stores]
        self.there: dict[Name, int] = {}
        self.good: dict[Place, Row] = {}
        self.leases: list[Row] = []
        self.states: dict[SessionKey, list[Session]] = {}
        self.highest = 0

    def teardown(self) -> None:
        for store in self.stores:
            self.loop.run_until_complete(store.close())
        self.loop.close()

    def ask(self, call: Callable[[Store], Awaitable[Any]]) -> Any:
        """What all stores say, which is the same; an error of theirs is an answer as well."""
        return self.ask_about((), call)

    def ask_about(self, held: Sequence[Row], call: Callable[..., Awaitable[Any]]) -> Any:
        """The same, with rows that each store knows by its own numbers."""
        first: Any = None
        for at, (store, numbers) in enumerate(zip(self.stores, self.numbers, strict=True)):
            own = [replace(one, n=numbers.get(one.n, one.n)) for one in held]
            told = self.loop.run_until_complete(_answer(call(store, *own)))
            if at == 0:
                first = told
                numbers.update((one.n, one.n) for one in _rows(first))
            else:
                known = {_name(one): one.n for one in _rows(first)}
                for one in _rows(told):
                    numbers.setdefault(known.get(_name(one), 0), one.n)
                theirs = {n: mine for mine, n in numbers.items()}
                assert _renumbered(told, theirs) == first
        return first

    def rows(self, box: Box) -> list[Row]:
        found: list[Row] = self.ask(lambda store: store.rows(box))
        return found

    def loaded(self, key: SessionKey) -> Any:
        return self.ask(lambda store: store.load(key))

    def now(self, after: float | None) -> Any:
        return None if after is None else self.clock.at + timedelta(seconds=after)

    def is_good(self, held: Row) -> bool:
        good = self.good.get((held.session, held.box))
        return good is not None and _fence(good) == _fence(held)

    def is_running(self, name: Name) -> bool:
        good = self.good.get(name[:2])
        return good is not None and good.key == name[2] and self.until(good) > self.clock.at

    @staticmethod
    def until(held: Row) -> Any:
        assert held.lease_until is not None
        return held.lease_until

    def gone(self, name: Name) -> None:
        del self.there[name]
        if (good := self.good.get(name[:2])) is not None and good.key == name[2]:
            del self.good[name[:2]]

    def came(self, one: Row) -> None:
        assert one.n > self.highest
        self.highest = one.n
        self.there[_name(one)] = one.n

    def leased(self, held: Row) -> None:
        """Nobody had the session, and no message before this one was left behind."""
        place = (held.session, held.box)
        before = self.good.get(place)
        assert before is None or self.until(before) <= self.clock.at
        assert not held.dead
        assert held.due is not None
        assert held.due <= self.clock.at
        assert self.until(held) == self.clock.at + timedelta(seconds=TTL)
        for other in self.ask(lambda store: store.rows(held.box, held.session)):
            if not other.dead and other.n < held.n:
                assert not (is_message(held.body) and is_message(other.body))
                assert held.box == "in"
            if not other.dead and comes_first(other.body) and other.due < held.due:
                raise AssertionError("an interruption was left behind")
        self.good[place] = held
        self.leases.append(held)

    # ---- what is done to rows

    @rule(body=bodies, session=sessions, due=maybe_seconds, busy=busy, lease=st.none() | owners)
    def put(self, body: Any, session: SessionKey, due: float | None, busy: Busy, lease: str | None) -> None:
        self.do_put(body, session, due, busy, lease)

    def do_put(self, body: Any, session: SessionKey, due: float | None, busy: Busy, lease: str | None) -> None:
        given = row(body, session, due=self.now(due))
        if isinstance(body, (Said, HistoryChanged)):
            given = replace(given, key=f"{given.key}{body.content if isinstance(body, Said) else body.by}")
        wanted = None if lease is None else Lease(owner=lease, ttl=TTL)
        found = self.ask(lambda store: store.put(given, busy=busy, lease=wanted))
        name = _name(given)
        if name in self.there:
            assert (found.is_new, found.leased, found.row.n) == (False, False, self.there[name])
        elif found.row is None:
            assert busy == "reject"
        else:
            assert found.is_new
            self.came(found.row)
            if found.leased:
                self.leased(found.row)

    @rule(box=boxes, owner=owners, limit=st.integers(0, 3), session=st.none() | sessions)
    def lease(self, box: Box, owner: str, limit: int, session: SessionKey | None) -> None:
        self.do_lease(box, owner, limit, session)

    def do_lease(self, box: Box, owner: str, limit: int, session: SessionKey | None) -> None:
        due = self.ask(lambda store: store.next_due(box))
        found = self.ask(lambda store: store.lease(box, owner, ttl=TTL, limit=limit, session=session))
        if limit and session is None:
            assert bool(found) is (due is not None and due <= self.clock.at)
        assert len({held.session for held in found}) == len(found) <= limit
        for held in found:
            self.leased(held)

    @rule(session=sessions, key=names, text=st.booleans(), ms=st.sampled_from((0, 0, 15_000)))
    def talk(self, session: SessionKey, key: str, text: bool, ms: int) -> None:
        """Somebody writes, or a message goes out: the rows whose order counts."""
        self.do_put(Said(key) if text else Outgoing(key=key, text="hi", after_ms=ms), session, None, "queue", None)

    @rule(box=boxes, session=sessions, how=st.sampled_from(("done", "park", "again")), seconds=seconds)
    def work(self, box: Box, session: SessionKey, how: str, seconds: float) -> None:
        """Somebody takes the next row and ends it in one of the orderly ways."""
        leases = len(self.leases)
        self.do_lease(box, "w1", 1, session)
        for held in self.leases[leases:]:
            if how == "again":
                self.do_again(held, seconds, None, 1)
            else:
                self.do_end(held, how == "park")

    @rule(box=boxes, session=sessions, interrupt=st.booleans())
    def crash(self, box: Box, session: SessionKey, interrupt: bool) -> None:
        """Somebody takes a row and is not heard of for longer than the lease; it may be interrupted."""
        self.do_lease(box, "w1", 1, session)
        self.do_jump(TTL)
        if interrupt:
            self.do_put(Interruption(id=f"{self.highest}"), session, None, "queue", "w2")
        self.do_lease(box, "w2", 1, session)

    @precondition(lambda self: self.leases)
    @rule(data=st.data(), seconds=seconds, floor=maybe_seconds, rung=st.integers(0, 3))
    def again(self, data: st.DataObject, seconds: float, floor: float | None, rung: int) -> None:
        self.do_again(self.drawn(data), seconds, floor, rung)

    def do_again(self, held: Row, seconds: float, floor: float | None, rung: int) -> None:
        due, until = self.now(seconds), self.now(floor)
        done = self.ask_about([held], lambda store, one: store.again(one, due=due, rung=rung, floor=until))
        assert done is self.is_good(held)
        if done:
            del self.good[held.session, held.box]

    @precondition(lambda self: self.leases)
    @rule(data=st.data(), park=st.booleans())
    def end(self, data: st.DataObject, park: bool) -> None:
        self.do_end(self.drawn(data), park)

    def do_end(self, held: Row, park: bool) -> None:
        done = self.ask_about([held], lambda store, one: store.park(one, why="attempts") if park else store.done(one))
        assert done is self.is_good(held)
        if done and park:
            del self.good[held.session, held.box]
        elif done:
            self.gone(_name(held))

    @precondition(lambda self: self.leases)
    @rule(data=st.data())
    def extend(self, data: st.DataObject) -> None:
        held = list({one.n: one for one in (self.drawn(data), self.drawn(data))}.values())
        found = self.ask_about(held, lambda store, *own: store.extend(own, ttl=TTL))
        assert [one is not None for one in found] == [self.is_good(one) for one in held]
        for one in found:
            if one is not None:
                self.good[one.session, one.box] = one

    @rule(box=boxes, session=sessions, some=st.booleans(), data=st.data())
    def revive(self, box: Box, session: SessionKey, some: bool, data: st.DataObject) -> None:
        keys = self.some_keys(data, session, box) if some else None
        self.ask(lambda store: store.revive(box, session, keys=keys))

    @rule(box=boxes, session=sessions, some=st.booleans(), mark=st.booleans(), data=st.data())
    def cancel(self, box: Box, session: SessionKey, some: bool, mark: bool, data: st.DataObject) -> None:
        keys = self.some_keys(data, session, box) if some else None
        by = Interruption(id="stop") if mark else None
        count = self.ask(lambda store: store.cancel(box, session, keys=keys, by=by))
        if mark:
            return
        named = [one for one in self.there if one[:2] == (session, box) and (keys is None or one[2] in keys)]
        withdrawn = [one for one in named if not self.is_running(one)]
        assert count == len(withdrawn)
        for one in withdrawn:
            self.gone(one)

    @rule(
        data=st.data(), session=sessions, take=st.booleans(), stale=st.booleans(), park=st.booleans(),
        idle=st.booleans(), drop=st.lists(names, max_size=2),
        armed=st.lists(st.tuples(names, seconds), max_size=2), sent=st.lists(names, max_size=2),
    )  # fmt: skip
    def commit(
        self, data: st.DataObject, session: SessionKey, take: bool, stale: bool, park: bool, idle: bool,
        drop: list[str], armed: list[tuple[str, float]], sent: list[str],
    ) -> None:  # fmt: skip
        held = self.drawn(data) if take and self.leases else None
        key = session if held is None else held.session
        known = self.states.get(key, [])
        before = known[0] if stale and known else known[-1] if known else None
        put = [wake_row(key, Wake(key=name, at=self.now(after))) for name, after in armed]
        put += [outgoing_row(key, Outgoing(key=name, text="hi", after_ms=5_000)) for name in sent]
        gone = tuple(f"woke::{name}" for name in drop)
        change = turn(before or key)
        if idle and before is not None:
            change = Change(session=before, kept=len(before.conversation.messages))
        parked = "attempts" if park and held is not None else ""
        change = replace(change, parked=parked, put=tuple(put), drop=gone)
        taken = [] if held is None else [held]
        told = self.ask_about(taken, lambda store, *own: store.commit(replace(change, taken=own[0] if own else None)))
        if held is not None and not self.is_good(held):
            assert told[0] is LeaseLost
        elif change.entries and known and before is not known[-1]:
            assert told[0] is SessionConflict
        else:
            assert isinstance(told, Session)
            if change.entries:
                self.states.setdefault(key, []).append(told)
            self.settled(held, bool(parked), key, gone, put)

    def settled(self, held: Row | None, parked: bool, key: SessionKey, drop: Sequence[str], put: Sequence[Row]) -> None:
        """What such a commit does with rows."""
        if held is not None and parked:
            del self.good[held.session, held.box]
        elif held is not None:
            self.gone(_name(held))
        for name in {(key, "in", one) for one in drop} & set(self.there):
            if not self.is_running(name):
                self.gone(name)
        for one in put:
            name = _name(one)
            if name not in self.there:
                (found,) = [other for other in self.rows(one.box) if _name(other) == name]
                self.came(found)
            elif one.box == "in" and (good := self.good.get(name[:2])) is not None and good.key == one.key:
                del self.good[name[:2]]

    @rule(seconds=st.sampled_from((-100, -10, 1, 10, 29, 30, 31, 1000)))
    def jump(self, seconds: float) -> None:
        self.do_jump(seconds)

    def do_jump(self, seconds: float) -> None:
        self.clock.move(seconds)

    # ---- what must hold

    @invariant()
    def nothing_accepted_is_lost_and_nothing_comes_of_itself(self) -> None:
        found = [one for box in BOXES for one in self.rows(box)]
        assert {_name(one): one.n for one in found} == self.there

    @invariant()
    def a_session_has_one_holder(self) -> None:
        for box in BOXES:
            held = [one for one in self.rows(box) if one.owner]
            assert {(one.session, box): _fence(one) for one in held} == {
                place: _fence(one) for place, one in self.good.items() if place[1] == box
            }
            assert len({one.session for one in held}) == len(held)

    @invariant()
    def sessions_are_what_was_committed(self) -> None:
        for key, known in self.states.items():
            assert self.loaded(key) == known[-1]

    # ---- what is drawn

    def drawn(self, data: st.DataObject) -> Row:
        """A lease that was given once, mostly a late one."""
        return self.leases[-1 - data.draw(st.integers(0, min(len(self.leases) - 1, 3)))]

    def some_keys(self, data: st.DataObject, session: SessionKey, box: Box) -> list[str]:
        """Keys of rows of the session, and one that is none."""
        keys = sorted(key for (of, where, key) in self.there if (of, where) == (session, box))
        return data.draw(st.lists(st.sampled_from([*keys, "nobody"]), max_size=3))


def _name(of: Row) -> Name:
    return (of.session, of.box, of.key)


async def _answer(said: Awaitable[Any]) -> Any:
    try:
        return await said
    except StoreError as error:
        return type(error), error.code, error.hint


def _rows(told: Any) -> list[Row]:
    found = told if isinstance(told, list) else [getattr(told, "row", None)]
    return [one for one in found if one is not None]


def _renumbered(told: Any, numbers: dict[int, int]) -> Any:
    if isinstance(told, list):
        return [None if one is None else replace(one, n=numbers.get(one.n, -1)) for one in told]
    if isinstance(told, Accepted) and told.row is not None:
        return replace(told, row=replace(told.row, n=numbers.get(told.row.n, -1)))
    return told


def _fence(held: Row) -> tuple[int, str, int]:
    return held.n, held.owner, held.attempt
