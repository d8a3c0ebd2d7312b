"""What holds of every record of which something was erased: drawn talks that forget, and go on."""

import asyncio
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from msgspec import json
from msgspec.structs import replace

from onrecord.conversation.identity import SessionKey
from onrecord.record.entry import Entry
from onrecord.record.fold import takes
from onrecord.record.kinds import Erased, HistoryChanged
from onrecord.session.erasure import Retention
from onrecord.session.folding import NO_FOLDS, Folds, refold
from onrecord.session.memory_store import MemoryStore
from onrecord.session.session import Session
from onrecord.session.walking import walk
from onrecord.turn.audit import audit
from tests.record.talks import AT, Talk, plain

pytestmark = pytest.mark.unit

KEY = SessionKey("s")


class Forgetful(Talk):
    """A talk of which things are erased now and then."""

    def __init__(self, seed: int) -> None:
        self.now = AT
        super().__init__(seed, MemoryStore(clock=lambda: self.now))
        self.may_change_history()
        self.erased = 0

    async def forgets(self) -> None:
        """Some messages are erased, what is old, or everything."""
        assert isinstance(self.store, MemoryStore)
        if self.session is None:
            return
        was = self.session
        if self.chance(6):
            done = await self.store.erase(KEY, why="all of it")
            self.keys.clear()
        elif self.chance(3):
            self.now = self.any_of([entry.at for entry in self.entries]) + timedelta(seconds=1)
            done = await self.store.expire(Retention(entries=timedelta(0)))
            self.now = AT
        else:
            ids = [m.id for m in was.conversation.messages] + ["nobody"]
            some = self.random.sample(ids, min(len(ids), 2))
            done = await self.store.erase(KEY, messages=some, why="asked")
        self.session = await self.store.load(KEY)
        self.entries = [entry async for entry in self.store.entries(KEY)]
        self.erased += done.entries
        self.holds(was)

    def holds(self, was: Session) -> None:
        """The record folds to the session, with folds and without, and proves what it still says."""
        session, entries = self.held, self.entries
        assert [entry.seq for entry in entries] == list(range(session.seq))
        assert session.generation > was.generation or session.version == was.version
        told = refold(KEY, entries, NO_FOLDS, digest_key=session.digest_key)
        assert plain(replace(told, version=session.version, slots={})) == plain(replace(session, slots={}))
        folds: Folds = self.agent.plan.folds
        whole = refold(KEY, entries, folds, digest_key=session.digest_key)
        for fold in folds.all:
            if fold.scope == "session":
                held = session.slots.get(fold.name)
                state = fold.start() if held is None else json.decode(held.value)
                assert whole.slots[fold.name].value == state
        walked = list(walk(Session(key=KEY, digest_key=session.digest_key), entries, NO_FOLDS))
        outside = {e.seq for e in entries if e.turn in self.outside}
        assert not [gap for seq, gap in audit(walked, session.digest_key) if not gap.erased and seq not in outside]
        for take in takes(entries):
            if any(isinstance(e.body, Erased) for e in take):
                assert all(isinstance(e.body, Erased) for e in take)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@example(seed=(351082, 7))  # what a dropped question had said, removed; then the turn that dropped it, erased
@given(seed=st.tuples(st.integers(0, 2**32), st.integers(4, 12)))
def test_a_record_that_forgets_folds_to_its_session_and_goes_on(seed: tuple[int, int]) -> None:
    """Whatever is erased, and whatever happens afterwards: questions answered, history changed, erased again."""
    held = Forgetful(seed[0])

    async def run() -> None:
        for _ in range(seed[1]):
            await held.step()
            if held.chance(3):
                await held.forgets()

    asyncio.run(run())


def erasures(entries: list[Entry]) -> int:
    """How many erasures a record tells of that are not superseded."""
    return sum(isinstance(e.body, HistoryChanged) and e.body.op == "erase" for e in entries)


def test_one_erasure_stands_for_all_before_it() -> None:
    """A record does not grow copies of what the session keeps."""
    held = Forgetful(7)

    async def run() -> None:
        for _ in range(6):
            for _ in range(3):
                await held.says()
            await held.forgets()

    asyncio.run(run())
    assert held.erased > 0
    assert erasures(held.entries) == 1
