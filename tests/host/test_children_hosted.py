"""Sub-agents under a host: who may answer, what is stored with what, what goes with whom, and processes that die."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.cli.main import main
from onrecord.conversation.identity import Identity, SessionKey
from onrecord.conversation.inputs import Answered, Ask, Interruption, approved, declined
from onrecord.conversation.outgoing import CallDelta, ChildDelta
from onrecord.errors import UsageError
from onrecord.governance import CheckIn, NeedsCheckIn
from onrecord.host import Host
from onrecord.host.live import Progress
from onrecord.host.questions import Caller
from onrecord.host.setup import Given
from onrecord.record.kinds import ToolReturned
from onrecord.session.memory_store import MemoryStore
from onrecord.stores import SqliteStore
from onrecord.testing import FakeEffects, ScriptedModel
from onrecord.tools.tool import Tool
from tests.agent.children import Effects, ask, clerk
from tests.host.dying import deaths
from tests.host.hosting import hosted, said
from tests.turn.acting import tool
from tests.turn.pausing.asking import asks

pytestmark = pytest.mark.integration

BOSS = Caller("Maria", audiences=frozenset({"approver"}))
ANA = Identity(principal="ana")


def desk(effects: Effects, *script: Any, **given: Any) -> Agent[Any, str]:
    """An agent with a clerk below it, who asks an approver before every payment."""
    below = clerk(effects).with_(
        tools=[Tool("pay", effects.pay, "Pay.", traits=(NeedsCheckIn(),)), tool("order", asks())],
        features=[CheckIn(expires_s=3600)],
    )
    return Agent(ScriptedModel(*script), tools=[below.as_tool()], **given)


async def below(host: Host[Any, Any], session: str = "s") -> list[Any]:
    """The sessions under one, as they are stored."""
    found = [await host.store.load(key) for key in await host.store.sessions()]
    return [held for held in found if held is not None and held.parent == session]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_process_may_die_before_any_statement_that_stores_a_child(tmp_path: Path) -> None:
    """The parent's turn and its children's are stored together or not at all; each payment has one key for ever."""
    assert deaths("dying_below.py", tmp_path) > 15


async def test_only_the_child_s_audience_may_answer() -> None:
    """Wrong, foreign, doubled and late answers change nothing; nobody reaches the child past its parent."""
    effects = Effects()
    async with hosted(desk(effects, ask("pay:a"), "Done.")) as host:
        question = (await host.turn("s", "Pay")).question
        assert question is not None
        assert (question.by, question.audience, question.decision) == ("agent:clerk", "approver", True)
        (child,) = await below(host)
        assert child.question is not None
        refused = {
            "decision-required": ("s", Answered(question.key, value="sure"), BOSS),
            "not-the-audience": ("s", approved(question, by="Ana"), Caller("Ana")),
            "asked-above": (child.key, approved(child.question, by="Maria"), BOSS),
        }
        for code, (session, answer, caller) in refused.items():
            with pytest.raises(UsageError) as told:
                await host.answer(session, answer, caller=caller)
            assert (told.value.code, effects.runs) == (code, [])
        yes = approved(question, by="Maria")
        first, again = await asyncio.gather(*(host.answer("s", yes, caller=BOSS) for _ in range(2)))
        assert {first.text, again.text} <= {"Done.", ""}
        late = await host.answer("s", declined(question, by="Maria"), caller=BOSS)
        assert (late.status, len(effects.runs), await host.store.rows("in")) == ("ignored", 1, [])


async def test_a_question_of_a_child_expires_by_itself() -> None:
    """The child hears it; its own wake is nobody's: one row, one end."""
    clock, effects = FakeEffects(), Effects()
    async with hosted(desk(effects, ask("pay:a"), "Done."), effects=clock) as host:
        paused = await host.turn("s", "Pay")
        assert paused.status == "paused"
        assert len(await host.store.rows("in")) == 1
        clock.advance(hours=2)
        await host.work(once=True)
        assert (await said(host))[-1] == "Done."
        (child,) = await below(host)
        assert (effects.runs, child.pending, await host.store.rows("in")) == ([], None, [])


async def test_a_newer_build_without_the_child_s_tool_cannot_answer(tmp_path: Path) -> None:
    """The answer is set aside and nothing ran; tried again by an older build, in a process of its own, it is taken."""
    effects, path = Effects(), tmp_path / "x.db"
    async with SqliteStore(path) as store, Host(desk(effects, ask("order:A")), store=store) as host:
        question = (await host.turn("s", "Order")).question
        assert question is not None
    newer: Agent[Any, str] = Agent(
        ScriptedModel("never"), tools=[clerk().with_(tools=[tool("pay")]).as_tool()], instructions="Newer."
    )
    async with SqliteStore(path) as store, Host(newer, store=store) as host:
        with pytest.raises(UsageError) as told:
            await host.answer("s", Answered(question.key, value="XL"))
        assert told.value.code == "asker-gone"
    async with SqliteStore(path) as store, Host(desk(effects, "Done.", instructions="Other."), store=store) as host:
        held = await store.load("s")
        assert held is not None
        (parked,) = await store.rows("in")
        assert (held.question, parked.dead) == (question, "asker-gone")
        await asyncio.to_thread(main, ["inbox", "retry", str(path)])
        assert (await host.answer("s", Answered(question.key, value="XL"))).text == "Done."


async def test_a_message_that_drops_the_question_closes_the_child_where_it_was() -> None:
    """Its session keeps what happened, and nobody can go on with it."""

    async def form(args: Any, ctx: Any) -> str:
        return str((await ctx.ask(Ask("Which?", on_message="drop"))).value)

    agent: Agent[Any, str] = Agent(
        ScriptedModel(ask("order:A"), "Something else, then."), tools=[clerk(ask_with=form).as_tool()]
    )
    async with hosted(agent) as host:
        assert (await host.turn("s", "Order")).status == "paused"
        (child,) = await below(host)
        assert (await host.turn("s", "Never mind")).text == "Something else, then."
        assert (await host.turn(child.key, Answered(child.question.key, value="XL"))).status == "ignored"
        (closed,) = await below(host)
        (call,) = closed.conversation.messages[-1].rounds[0].calls
        assert (closed.question, call.name, call.status) == (None, "order", "cancelled")
        held = await host.store.load("s")
        assert held is not None
        assert held.pending is None


async def test_a_child_goes_with_whom_it_belongs_to() -> None:
    """With its turn, its session, its person; another turn's child stays."""

    async def given(key: SessionKey, input: Any) -> Given[Any]:
        return Given(owner=ANA)

    store = MemoryStore()
    effects = Effects()
    script = [ask("pay:a"), "One.", ask("pay:b"), "Two."]
    agent = Agent(ScriptedModel(*script, *script), tools=[clerk(effects).as_tool()])
    async with hosted(agent, store=store, given=given) as host:
        first = await host.turn("s", "a")
        await host.turn("s", "b")
        assert first.session is not None
        await host.erase("s", messages=[first.session.conversation.messages[0].id], why="asked")
        kept = [len(child.conversation.messages) for child in await below(host)]
        assert sorted(kept) == [0, 2]
        assert "pay:a" not in await _stored(store)
        assert "pay:b" in await _stored(store)
        await host.turn("t", "a")
        assert (await host.erase("s", why="asked")).sessions >= 2
        assert "pay:b" not in await _stored(store)
        assert "pay:a" in await _stored(store)
        await host.erase(ANA, why="left")
        assert "pay:" not in await _stored(store)


async def _stored(store: MemoryStore) -> str:
    """Everything that a store holds of all sessions."""
    out = list[str]()
    for key in await store.sessions():
        held = await store.load(key)
        out += [repr(entry) async for entry in store.entries(key)]
        out.append(repr(None if held is None else held.conversation.messages))
    return "".join(out)


async def test_an_interruption_reaches_the_child_and_the_talk_goes_on() -> None:
    """What the child did stands, its session is closed, and the next turn is like any other."""
    began = asyncio.Event()

    class Stuck(ScriptedModel):
        async def stream(self, request: Any, /) -> Any:
            began.set()
            await asyncio.Event().wait()
            yield None

    low: Agent[Any, str] = Agent(Stuck(), name="clerk")
    agent: Agent[Any, str] = Agent(ScriptedModel(ask("x"), "Fine."), tools=[low.as_tool()])
    async with hosted(agent) as host, asyncio.timeout(5):
        ticket = await host.send("s", "Go")
        await began.wait()
        assert await host.interrupt("s", Interruption(id="i")) == "recorded"
        assert (await ticket.result()).status == "interrupted"
        assert (await host.turn("s", "Well?")).text == "Fine."
        (child,) = await below(host)
        assert (child.pending, child.interruptions) == (None, ("i",))


async def test_live_readers_see_the_child_at_work() -> None:
    """Its calls, wrapped; what its parent says comes as ever."""
    seen: list[Any] = []
    agent: Agent[Any, str] = Agent(ScriptedModel(ask("pay:a"), "Paid."), tools=[clerk().as_tool()])
    async with hosted(agent) as host:

        async def read() -> None:
            async for item in host.live("s"):
                if isinstance(item, Progress):
                    seen.extend(item.items)
                    if item.text:
                        return

        reading = asyncio.ensure_future(read())
        await asyncio.sleep(0)
        await host.turn("s", "Go")
        async with asyncio.timeout(5):
            await reading
    wrapped = [d.delta for d in seen if isinstance(d, ChildDelta)]
    assert [(d.name, d.status) for d in wrapped if isinstance(d, CallDelta)] == [("pay", "asked"), ("pay", "returned")]


@pytest.mark.parametrize("command", ["show", "export", "verify"])
async def test_the_command_line_shows_a_child_s_record_like_any_other(command: str, tmp_path: Path) -> None:
    """It is listed, shown, exported and verified by its own key."""
    path = tmp_path / "x.db"
    agent: Agent[Any, str] = Agent(ScriptedModel(ask("pay:a"), "Paid."), tools=[clerk().as_tool()])
    async with SqliteStore(path) as store, Host(agent, store=store) as host:
        await host.turn("s", "Go")
        (child,) = await below(host)
        entries = [entry async for entry in store.entries("s")]
        assert [e.body.spent is not None for e in entries if isinstance(e.body, ToolReturned)] == [True]
    more = ["-o", str(tmp_path / "out.jsonl")] if command == "export" else []
    assert await asyncio.to_thread(main, ["record", command, str(path), child.key.id, *more]) == 0
