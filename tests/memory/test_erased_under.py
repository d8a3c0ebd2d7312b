"""What is erased while a turn of it runs, here or in another process, leaves nothing on a shelf."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, get_args

import pytest

from onrecord.agent import Agent
from onrecord.conversation.identity import Identity, SessionKey
from onrecord.host import Host, Ticket
from onrecord.host.setup import Given
from onrecord.memory import Episodes, Facts, Kept, Memory, PlainShelf, Recent, Summary
from onrecord.memory.ports import KeptKind, Space
from onrecord.session.memory_store import MemoryStore
from onrecord.testing import ScriptedModel
from tests.host.hosting import hosted

pytestmark = pytest.mark.integration

ANA = Identity(principal="ana")


class Late(PlainShelf):
    """A shelf on which a turn waits as it settles, before it puts something of a kind there."""

    def __init__(self, kind: KeptKind = "message") -> None:
        super().__init__()
        self.kind, self.waits, self.goes_on = kind, asyncio.Event(), asyncio.Event()

    async def put(self, space: Space, kept: Sequence[Kept], /, **about: Any) -> None:
        if any(one.kind == self.kind for one in kept):
            self.waits.set()
            await self.goes_on.wait()
        await super().put(space, kept, **about)

    async def held_up(self, host: Host[Any, Any], text: str) -> Ticket[Any]:
        """A message whose turn has come to this shelf, and waits."""
        self.waits.clear()
        self.goes_on.clear()
        ticket = await host.send("s", text)
        await self.waits.wait()
        return ticket


async def given(key: SessionKey, input: Any) -> Given[Any]:
    """Every session is hers."""
    return Given(owner=ANA)


async def left(shelf: PlainShelf) -> list[str]:
    """All that is kept of her."""
    return [one.text for kind in get_args(KeptKind) for one in await shelf.newest(Space(owner=ANA), kind, limit=99)]


@pytest.mark.parametrize("other", [False, True], ids=["here", "elsewhere"])
@pytest.mark.parametrize(
    ("what", "turns"), [("session", 0), ("person", 0), ("session", 1), ("person", 1), ("message", 1)]
)
async def test_a_turn_that_settles_meanwhile_leaves_nothing(what: str, turns: int, other: bool) -> None:
    """Wherever it is erased: the turn comes to nothing, and so does what was learned of it. One that is taken anew
    without what is erased, and one of a session that no store knew yet, leave what they say themselves.
    """
    store, shelf = MemoryStore(), Late()
    agent = Agent(ScriptedModel(*["ok"] * 9), features=[Memory(shelf, (Recent(9), Facts(), Episodes()))])
    async with hosted(agent, store=store, given=given) as host, hosted(agent, store=store, given=given) as elsewhere:
        shelf.goes_on.set()
        for _ in range(turns):
            await host.turn("s", "My name is Ana")
        ticket = await shelf.held_up(host, "I live in Porto")
        eraser = elsewhere if other else host
        if what == "message":
            session = await store.load("s")
            assert session is not None
            messages = [session.conversation.messages[0].id]
            await eraser.erase("s", messages=messages, why="asked")
        else:
            await eraser.erase(SessionKey("s") if what == "session" else ANA, why="asked")
        shelf.goes_on.set()
        result = await ticket.result()
        kept = await left(shelf)
        assert not [text for text in kept if "Ana" in text]
        assert bool(kept) == (result.status == "answered")


async def test_what_a_model_made_of_erased_words_goes_too() -> None:
    """A summary that was asked for before they were erased elsewhere, and is put there afterwards."""
    store, shelf = MemoryStore(), Late("summary")
    model = ScriptedModel("a", "b", "c", consult=["Ana was there", "Somebody was there"])
    agent = Agent(model, features=[Memory(shelf, (Summary(recent=1, size=2),))])
    async with hosted(agent, store=store, given=given) as host, hosted(agent, store=store, given=given) as elsewhere:
        await host.turn("s", "My name is Ana")
        ticket = await host.send("s", "I live in Porto")
        await shelf.waits.wait()
        session = await store.load("s")
        assert session is not None
        await elsewhere.erase("s", messages=[session.conversation.messages[0].id], why="asked")
        shelf.goes_on.set()
        await ticket.result()
        assert not [text for text in await left(shelf) if "Ana" in text]


async def test_a_reset_forgets_nothing() -> None:
    """A conversation that begins anew is no erasure: what its person said before is still remembered."""
    store, shelf = MemoryStore(), Late()
    agent = Agent(ScriptedModel(*["ok"] * 9), features=[Memory(shelf, (Facts(), Recent(9)))])
    async with hosted(agent, store=store, given=given) as host, hosted(agent, store=store, given=given) as elsewhere:
        shelf.goes_on.set()
        await host.turn("s", "My name is Ana")
        ticket = await shelf.held_up(host, "hello")
        await elsewhere.reset("s", by="ana")
        shelf.goes_on.set()
        await ticket.result()
        assert "name: Ana" in await left(shelf)


async def test_what_was_erased_before_a_turn_began_is_not_erased_again() -> None:
    """The conflict is about something else: what was said since then stays remembered."""
    store, shelf = MemoryStore(), Late()
    agent = Agent(ScriptedModel(*["ok"] * 9), features=[Memory(shelf, (Facts(), Recent(9)))])
    async with hosted(agent, store=store, given=given) as host, hosted(agent, store=store, given=given) as elsewhere:
        shelf.goes_on.set()
        first = await host.turn("s", "I live in Porto")
        assert first.session is not None
        await host.erase("s", messages=[first.session.conversation.messages[0].id], why="asked")
        await host.turn("s", "My name is Ana")
        ticket = await shelf.held_up(host, "hello")
        await elsewhere.reset("s", by="ana")
        shelf.goes_on.set()
        await ticket.result()
        kept = await left(shelf)
        assert "name: Ana" in kept
        assert not [text for text in kept if "Porto" in text]
