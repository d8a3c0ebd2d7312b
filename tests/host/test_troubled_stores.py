"""Stores that fail, are slow or hold what nobody can read: what was accepted is taken all the same."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from onrecord import Agent, Said
from onrecord.conversation.identity import SessionKey
from onrecord.errors import StoreError
from onrecord.host import Given
from onrecord.session.inbox import Row
from onrecord.session.memory_store import MemoryStore
from onrecord.testing import FakeEffects, ScriptedModel
from tests.host.hosting import hosted, said, settled
from tests.turn.interrupting.live import WAIT, Halting

pytestmark = pytest.mark.integration


async def has_said(host: Any, text: str) -> bool:
    """Whether that was said last."""
    return (await said(host))[-1:] == [text]


async def given_back(host: Any) -> bool:
    """Whether the row was leased once and nobody has it."""
    return [(row.attempt, row.owner) for row in await host.store.rows("in")] == [(1, "")]


@pytest.mark.parametrize("where", ["load", "given"])
async def test_a_turn_that_a_store_kept_from_beginning_is_taken_anew_soon(where: str) -> None:
    """Whichever store that was: the host's own, or one that `given` reads. Not when its lease ends."""
    effects = FakeEffects()
    store = MemoryStore(clock=effects.now)
    failing = [StoreError("out of reach", code="store-unreachable")]

    async def given(key: Any, input: Any) -> Given[Any]:
        if where == "given" and failing:
            raise failing.pop()
        return Given()

    load = store.load

    async def loads(key: Any, /, **known: Any) -> Any:
        if where == "load" and failing:
            raise failing.pop()
        return await load(key, **known)

    store.load = loads  # type: ignore[method-assign]  # a store that fails once
    async with hosted(Agent(ScriptedModel("Hello.")), store=store, effects=effects, given=given) as host:
        await store.put(Row(session=SessionKey("s"), box="in", key="said::m", body=Said("Hi")))
        async with host:
            await settled(lambda: given_back(host))
            (row,) = await host.store.rows("in")
            assert (row.attempt, row.clean, row.due) == (1, 1, effects.at + timedelta(seconds=5))
            effects.advance(seconds=6)
            await settled(lambda: has_said(host, "Hello."))


async def test_a_session_that_nobody_can_read_keeps_no_one_else_waiting() -> None:
    """Whoever waits for a turn that another host took is told, though the rows of another session do not decode."""
    effects = FakeEffects()
    store = MemoryStore(clock=effects.now)
    read = store.rows

    async def rows(box: Any, session: Any = None, /, **more: Any) -> Any:
        if session == SessionKey("damaged"):
            raise StoreError("a row does not decode", code="store-corrupt")
        return await read(box, session, **more)

    store.rows = rows  # type: ignore[method-assign]  # a store in which one session is damaged
    model = Halting((WAIT, "Done."))
    async with hosted(Agent(model), turns=1, store=store, effects=effects) as host:
        await host.send("other", "Hi")
        await model.waiting.wait()
        await host.send("damaged", "Hi")
        ticket = await host.send("whole", "Hi")
        async with hosted(Agent(ScriptedModel("Hello.", "Hello.")), store=store, effects=effects) as other, other:
            assert (await ticket.result()).text == "Hello."
