"""Disks that are full, read-only, locked or broken under a host: a clear error, a sound file, nothing lost."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from onrecord import Agent, ModelError, Said
from onrecord.conversation.identity import SessionKey
from onrecord.conversation.outgoing import Outgoing
from onrecord.errors import StoreError
from onrecord.session.folding import refold
from onrecord.session.inbox import Lease, Row
from onrecord.stores import SqliteStore, sqlite_schema
from onrecord.testing import FakeEffects, ScriptedModel, raises
from tests.host.faults import CODES, FaultyStore, broken, faulty, is_write
from tests.host.hosting import hosted, said, settled
from tests.stores.filled import intact
from tests.turn.interrupting.live import WAIT, Halting

pytestmark = pytest.mark.integration

S = SessionKey("s")
faults = pytest.mark.parametrize("fault", CODES)


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is locked is told as soon as it was tried twice."""
    monkeypatch.setattr(sqlite_schema, "BUSY_S", 0.0)


async def talk_is(host: Any, texts: list[str]) -> bool:
    """Whether the session holds these texts, and nothing waits any more."""
    return await said(host) == texts and not await host.store.rows("in") and not await host.store.rows("out")


async def sound(store: FaultyStore, path: Path) -> None:
    """The file is whole, and the session is what its record tells."""
    session = await store.load("s")
    assert session is not None
    again = refold(session.key, [e async for e in store.entries("s")], digest_key=session.digest_key)
    assert again.conversation == session.conversation
    assert intact(path)


@faults
async def test_what_cannot_be_accepted_is_refused_and_leaves_nothing(tmp_path: Path, fault: str) -> None:
    """The sender gets the error, and may send again once there is room."""
    effects = FakeEffects()
    async with (
        faulty(tmp_path / "x.db", effects) as store,
        hosted(Agent(ScriptedModel("Hello.")), store=store, effects=effects) as host,
    ):
        store.faults["put"] = fault
        with pytest.raises(StoreError) as told:
            await host.turn("s", Said("Hi", key="m"))
        assert (told.value.code, "Hi" in str(told.value)) == (CODES[fault], False)
        assert await store.rows("in") == []
        store.faults.clear()
        assert (await host.turn("s", Said("Hi", key="m"))).text == "Hello."
        await sound(store, tmp_path / "x.db")


@faults
async def test_a_host_that_cannot_lease_goes_on_once_it_can(tmp_path: Path, fault: str) -> None:
    """What waits is not touched meanwhile."""
    effects = FakeEffects()
    async with (
        faulty(tmp_path / "x.db", effects) as store,
        hosted(Agent(ScriptedModel("Hello.")), store=store, effects=effects) as host,
    ):
        store.faults["lease"] = fault
        await store.put(Row(session=S, box="in", key="said::m", body=Said("Hi", key="m")))
        host._desk.start()
        await settled(lambda: store.met)
        assert [(row.owner, row.attempt) for row in await store.rows("in")] == [("", 0)]
        store.faults.clear()
        await settled(lambda: talk_is(host, ["Hi", "Hello."]))
        await sound(store, tmp_path / "x.db")


@faults
async def test_a_turn_outlives_heartbeats_that_fail(tmp_path: Path, fault: str) -> None:
    """Its lease is as good as before until it ends, and its commit decides."""
    effects, model = FakeEffects(), Halting((WAIT, "Hello."))
    async with (
        faulty(tmp_path / "x.db", effects) as store,
        hosted(Agent(model), store=store, effects=effects, lease_s=0.03) as host,
    ):
        ticket = await host.send("s", "Hi")
        await model.waiting.wait()
        store.faults["extend"] = fault
        await settled(lambda: len(store.met) > 1)
        store.faults.clear()
        model.gate.set()
        assert (await ticket.result()).text == "Hello."
        await sound(store, tmp_path / "x.db")


@faults
async def test_a_turn_that_cannot_be_stored_is_taken_anew(tmp_path: Path, fault: str) -> None:
    """Who asked gets the error, nothing of it is stored, and however long it lasts the input is not set aside."""
    effects, sent = FakeEffects(), list[str]()

    async def deliver(key: SessionKey, message: Outgoing) -> None:
        sent.append(message.text)

    replies = [f"Reply {n}." for n in range(30)]
    async with (
        faulty(tmp_path / "x.db", effects) as store,
        hosted(Agent(ScriptedModel(*replies)), store=store, effects=effects, deliver=deliver) as host,
    ):
        store.faults["commit"] = fault
        with pytest.raises(StoreError) as told:
            await host.turn("s", "Hi")
        assert told.value.code == CODES[fault]

        def has_failed_for_long() -> bool:
            effects.advance(seconds=1)
            return len(store.met) > 8

        await settled(has_failed_for_long)
        assert await store.load("s") is None
        store.faults.clear()
        effects.advance(seconds=16)
        await settled(lambda: sent)
        await settled(lambda: talk_is(host, ["Hi", *sent]))
        assert len(sent) == 1
        await sound(store, tmp_path / "x.db")


@faults
async def test_a_row_that_cannot_be_given_back_comes_back_by_itself(tmp_path: Path, fault: str) -> None:
    """A model that failed over a store that fails: its lease ends, and it is taken anew."""
    effects = FakeEffects()
    async with (
        faulty(tmp_path / "x.db", effects) as store,
        hosted(Agent(ScriptedModel(raises("overload"), "Hello.")), store=store, effects=effects) as host,
    ):
        store.faults["again"] = fault
        with pytest.raises((StoreError, ModelError)) as told:
            await host.turn("s", "Hi")
        assert isinstance(told.value, StoreError)
        store.faults.clear()
        effects.advance(seconds=16)
        await settled(lambda: talk_is(host, ["Hi", "Hello."]))
        await sound(store, tmp_path / "x.db")


@faults
async def test_an_input_to_ignore_that_cannot_be_deleted_is_ignored_later(tmp_path: Path, fault: str) -> None:
    """It makes no second turn."""
    effects = FakeEffects()
    async with (
        faulty(tmp_path / "x.db", effects) as store,
        hosted(Agent(ScriptedModel("Hello.")), store=store, effects=effects) as host,
    ):
        await host.turn("s", Said("Hi", key="m"))
        store.faults["done"] = fault
        with pytest.raises(StoreError) as told:
            await host.turn("s", Said("Hi", key="m"))
        assert told.value.code == CODES[fault]
        store.faults.clear()
        effects.advance(seconds=16)
        await settled(lambda: talk_is(host, ["Hi", "Hello."]))
        await sound(store, tmp_path / "x.db")


@faults
async def test_a_message_that_cannot_be_crossed_off_comes_again_under_its_key(tmp_path: Path, fault: str) -> None:
    """At least once: a channel that knows the key drops it."""
    effects, sent = FakeEffects(), list[tuple[str, str]]()

    async def deliver(key: SessionKey, message: Outgoing) -> None:
        sent.append((message.key, message.text))

    async with (
        faulty(tmp_path / "x.db", effects) as store,
        hosted(Agent(ScriptedModel("Hello.")), store=store, effects=effects, deliver=deliver) as host,
    ):
        store.faults["done"] = fault
        await host.turn("s", "Hi")
        await settled(lambda: store.met)
        store.faults.clear()
        effects.advance(seconds=16)
        await settled(lambda: talk_is(host, ["Hi", "Hello."]))
        assert (len(sent), len(set(sent))) == (2, 1)


@faults
@pytest.mark.parametrize("call", ["park", "again"])
async def test_a_message_whose_channel_and_store_fail_is_not_lost(tmp_path: Path, call: str, fault: str) -> None:
    """It can be neither given back nor set aside: its lease ends, and it is tried anew."""
    effects, tries = FakeEffects(), list[int]()

    async def deliver(key: SessionKey, message: Outgoing) -> None:
        tries.append(1)
        if len(tries) == 1:
            raise OSError

    retry = [] if call == "park" else [1.0]
    async with (
        faulty(tmp_path / "x.db", effects) as store,
        hosted(Agent(ScriptedModel("Hello.")), store=store, effects=effects, deliver=deliver, retry=retry) as host,
    ):
        store.faults[call] = fault
        await host.turn("s", "Hi")
        await settled(lambda: set(store.met) == {call})
        store.faults.clear()
        effects.advance(seconds=16)
        await settled(lambda: talk_is(host, ["Hi", "Hello."]))


async def test_a_file_that_somebody_else_keeps_locked_is_waited_for(tmp_path: Path) -> None:
    """Beyond the timeout the sender is told; the host serves again when the lock is gone."""
    effects = FakeEffects()
    async with (
        faulty(tmp_path / "x.db", effects) as store,
        hosted(Agent(ScriptedModel("One.", "Two.")), store=store, effects=effects) as host,
    ):
        assert (await host.turn("s", "1")).text == "One."
        with closing(sqlite3.connect(tmp_path / "x.db", isolation_level=None)) as other:
            other.execute("begin immediate")
            with pytest.raises(StoreError) as told:
                await host.turn("s", Said("2", key="m"))
            assert told.value.code == "store-busy"
            other.execute("rollback")
        assert (await host.turn("s", Said("2", key="m"))).text == "Two."
        await sound(store, tmp_path / "x.db")


# ---- each statement of each call -------------------------------------------------------------------------------------


async def _turn(path: Path, effects: FakeEffects, before: Any) -> tuple[FaultyStore, list[str]]:
    """One turn with a message out, under a test's eyes; its errors are told to nobody."""
    sent = list[str]()

    async def deliver(key: SessionKey, message: Outgoing) -> None:
        sent.append(f"{message.key} {message.text}")

    store = FaultyStore(path, effects)
    store.before = before
    async with hosted(Agent(ScriptedModel("A.", "A.", "A.")), store=store, effects=effects, deliver=deliver) as host:
        for _ in range(3):
            try:
                await host.turn("s", Said("Hi", key="m"))
            except StoreError:
                effects.advance(seconds=16)
            else:
                break

        async def quiet() -> bool:
            effects.advance(seconds=1)
            return await talk_is(host, ["Hi", "A."])

        await settled(quiet)
    return store, sent


@pytest.mark.parametrize("fault", ["SQLITE_IOERR_WRITE", "SQLITE_BUSY"])
async def test_a_fault_at_any_one_statement_of_a_turn_costs_nothing(tmp_path: Path, fault: str) -> None:
    """From the first put to the last deletion: the turn is there once, and one text went out under one key."""
    left, place = [0], 0
    while left[0] <= 0:  # until a turn has no more statements than that
        place += 1
        path, left = tmp_path / f"{place}.db", [place]

        def failing(call: str, sql: str, left: list[int] = left) -> None:
            if call and (is_write(sql) or sql.startswith("begin")):
                left[0] -= 1
                if left[0] == 0:
                    raise broken(fault)

        store, sent = await _turn(path, FakeEffects(), failing)
        assert len(set(sent)) == 1
        await sound(store, path)
        await store.close()
    assert place > 10


async def test_an_input_whose_storing_failed_after_it_was_done_is_taken_once(tmp_path: Path) -> None:
    """A disk that says no and did it all the same: the sender sends again, and that is the same input."""
    effects = FakeEffects()

    class Late(SqliteStore):
        fails = True

        async def put(self, row: Row, /, *, busy: Any = "queue", lease: Lease | None = None) -> Any:
            accepted = await super().put(row, busy=busy, lease=lease)
            if self.fails:
                self.fails = False
                raise StoreError("the disk said no", code="store-io")
            return accepted

    agent = Agent(ScriptedModel("Hello.", "Twice."))
    async with Late(tmp_path / "x.db", clock=effects.now) as store, hosted(agent, store=store, effects=effects) as host:
        with pytest.raises(StoreError):
            await host.turn("s", Said("Hi", key="m"))
        async with asyncio.timeout(5):
            result = await host.turn("s", Said("Hi", key="m"))
        assert result.text == "Hello."
        assert await said(host) == ["Hi", "Hello."]
