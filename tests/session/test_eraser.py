"""Erasing goes in short steps, and does not trip over those who write in between."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import TypeVar

import pytest

from onrecord.conversation.identity import SessionKey
from onrecord.conversation.inputs import Question, Said, Woke
from onrecord.conversation.outgoing import Wake
from onrecord.errors import StoreError
from onrecord.record.entry import Entry
from onrecord.record.kinds import (
    Noted,
    Pending,
    ToolReturned,
    TurnClosed,
    TurnInput,
    TurnOpened,
    TurnPaused,
    WakeArmed,
)
from onrecord.session import eraser
from onrecord.session.eraser import Cells
from onrecord.session.erasing import Told
from onrecord.session.erasure import Erasure, Retention
from onrecord.session.memory_cells import MemoryCells
from onrecord.session.memory_store import MemoryStore
from onrecord.session.session import Session
from onrecord.session.store import Change
from onrecord.testing.conformance.asking import loaded, record
from onrecord.testing.conformance.erasable import folds
from onrecord.testing.conformance.samples import changed, entries_of, turn

pytestmark = pytest.mark.unit

T = TypeVar("T")
KEY = SessionKey("s")
DAY = timedelta(days=1)
OLD = datetime(2001, 1, 1, tzinfo=UTC)


class Interrupted(MemoryStore):
    """A store to which somebody commits a turn whenever an erasure has looked at it, a given number of times."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.times, self.looked = times, 0

    async def _step(self, act: Callable[[Cells], T], /, *, writes: bool = True) -> T:
        done = await super()._step(act, writes=writes)
        if not writes:
            self.looked += 1
            if self.looked <= self.times:
                await self.commit(turn(await loaded(self, KEY), f"meanwhile {self.looked}"))
        return done


@pytest.mark.parametrize("times", [0, 1, 2, 3])
async def test_a_commit_in_between_is_neither_lost_nor_in_the_way(times: int) -> None:
    """The session is looked at again, at last by the transaction that writes."""
    store = Interrupted(times)
    session = await store.commit(turn(KEY, "one"))
    done = await store.erase(KEY, messages=[session.conversation.messages[0].id], why="asked")
    assert done == Erasure(messages=2, entries=session.seq, turns=("s:said::m0~0",))
    told = [getattr(m, "text", "") for m in (await folds(store, KEY)).conversation.messages]
    assert told == [text for n in range(times) for text in (f"meanwhile {n + 1}", "80 euros.")]
    assert store.looked == min(times + 1, 3)


class Counting(MemoryStore):
    """A store that counts how many entries each step of it rewrites."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []

    async def _step(self, act: Callable[[Cells], T], /, *, writes: bool = True) -> T:
        sizes: list[int] = []

        class Seen(MemoryCells):
            def rewrite(self, key: SessionKey, entries: Sequence[Entry]) -> None:
                sizes.append(len(entries))
                super().rewrite(key, entries)

        with self._open():
            done = act(Seen(self._kept, self._table, self._codec))
        self.sizes += sizes
        return done


async def test_many_entries_expire_in_steps_of_a_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever writes meanwhile waits for one step, not for all of it."""
    monkeypatch.setattr(eraser, "AT_ONCE", 20)
    store = Counting()
    session = Session(key=KEY)
    await store.commit(changed(session, entries_of(session, [Noted(by="n", text=f"{n}") for n in range(50)], at=OLD)))
    done = await store.expire(Retention(kinds={"note": DAY}))
    assert (done.entries, store.sizes) == (50, [20, 20, 10, 0])
    assert (await store.expire(Retention(kinds={"note": DAY}))).entries == 0


async def test_a_record_that_does_not_fold_can_only_be_erased_whole() -> None:
    """Messages of it are refused with a hint; the session as a whole goes."""
    store, session = MemoryStore(), Session(key=KEY)
    nowhere = ToolReturned(call="c", round="nowhere", name="look", status="returned")
    entries = entries_of(session, (nowhere, TurnClosed(status="answered")))
    await store.commit(Change(session=Session(key=KEY, seq=len(entries)), entries=entries))
    with pytest.raises(StoreError) as told:
        await store.erase(KEY, messages=["m"], why="asked")
    assert told.value.code == "store-record"
    assert "whole" in told.value.hint
    assert (await store.erase(KEY, why="asked")).entries == len(entries)
    _ = await folds(store, KEY)


async def test_data_that_no_record_tells_of_stays() -> None:
    """A session that began with data of the host's keeps them; what the erased turn changed is as it was before."""
    store = MemoryStore()
    session = await store.commit(turn(Session(key=KEY, data={"plan": "gold"}, digest_key="k")))
    session = await store.commit(turn(session))
    await store.erase(KEY, messages=[session.conversation.messages[2].id], why="asked")
    left = await folds(store, KEY)
    assert left.data == {"plan": "gold", "last": "What is a room?", "turns": 0}
    told = Told.of(left, await record(store, KEY))
    assert set(told.origins) == {m.id for m in left.conversation.messages}


async def test_what_a_wake_carried_goes_with_the_turn_that_armed_it() -> None:
    """Also once it fired, and while its turn waits for a person; wakes of other turns keep what they carry."""
    store, session = MemoryStore(), Session(key=KEY, digest_key="k1")
    for name in ("first", "second"):
        fired = Woke("reminder", at=OLD, payload=f"{name} pills")
        armed = (
            TurnOpened(input_kind="said", row="r", now=OLD), TurnInput(input=Said(name), now=OLD),
            WakeArmed(wake=Wake(key=fired.key, at=OLD, payload=fired.payload)), TurnClosed(status="silent"),
        )  # fmt: skip
        pending = Pending(
            turn=f"woken by {name}", row="woke::reminder", input=fired, now=OLD, key="speak", place="", take=1,
            question=Question(key="q", text="Sure?", by="rule"),
        )  # fmt: skip
        opened = TurnOpened(input_kind="woke", row="r", now=OLD)
        woken = opened, TurnInput(input=fired, now=OLD), TurnPaused(pending=pending)
        session = await store.commit(changed(session, entries_of(session, armed, turn=name)))
        session = await store.commit(changed(session, entries_of(session, woken, turn=pending.turn)))
    for name, left in (("first", {"second"}), ("second", set[str]())):
        await store.erase(KEY, messages=[f"{name}/u"], why="asked")
        seen = str(await record(store, KEY)) + str((await folds(store, KEY)).pending)
        assert {each for each in ("first", "second") if f"{each} pills" in seen} == left
