"""The moment ``settle``, and watchers: they look on and end no turn (architecture §6, §7)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.conversation.inputs import Ask
from onrecord.errors import MessageDenied
from onrecord.record.entry import Entry, kind_of
from onrecord.record.kinds import ENDS, Noted
from onrecord.testing import ScriptedModel, call
from onrecord.turn.moments import Deny, Hooks, Watch
from onrecord.turn.turn import Turn
from tests.turn.acting import Named, bodies, kinds, tool, turn

pytestmark = pytest.mark.unit


def settling(hook: Any, name: str = "mine") -> Named:
    """A settle hook as a feature."""
    return Named(name, Hooks(on_settle=hook))


# ---- settle ----------------------------------------------------------------------------------------------------------


async def test_settle_runs_once_when_everything_is_said() -> None:
    """Before the turn closes, with the turn as it came out."""
    seen: list[Any] = []

    async def look(turn: Turn) -> None:
        seen.append(([m.text for m in turn.messages], [r.text for r in turn.rounds], turn.llm_calls))
        turn.note(Noted(by="mine", text="looked"))

    result = await turn(Agent(ScriptedModel(call("lookup"), "done"), tools=[tool()], features=[settling(look)]))
    assert seen == [(["done"], ["", "done"], 2)]
    assert kinds(result)[-2:] == ["note", "turn.closed"]


async def test_a_settle_hook_that_raises_is_noted_and_the_answer_stands() -> None:
    """The person has read it already; the other hooks still run."""

    async def broken(turn: Turn) -> None:
        raise OSError("secret")

    async def fine(turn: Turn) -> None:
        turn.note(Noted(by="fine", text="ran"))

    result = await turn(Agent(ScriptedModel("x"), features=[settling(broken, "broken"), settling(fine, "fine")]))
    assert result.text == "x"
    told = [(n.by, n.text) for n in bodies(result, Noted)]
    assert told == [("broken", "settle failed: OSError"), ("fine", "ran")]


async def test_settle_runs_for_turns_that_close_and_for_no_other() -> None:
    """Not for one that was denied, and not for one that waits for a person."""
    seen: list[str] = []

    async def look(turn: Turn) -> None:
        seen.append("settled")

    async def deny(turn: Turn, given: Any) -> Any:
        return Deny("no")

    with pytest.raises(MessageDenied):
        await turn(Agent(ScriptedModel(), features=[Named("deny", Hooks(on_input=deny)), settling(look)]))
    asking = tool("ask", lambda *_: Ask("Which?"))
    paused = await turn(Agent(ScriptedModel(call("ask")), tools=[asking], features=[settling(look)]))
    assert (paused.status, seen) == ("paused", [])


# ---- watch -----------------------------------------------------------------------------------------------------------


async def test_a_watcher_sees_every_entry_as_it_is_filed() -> None:
    """In order, from the opening to the end."""
    seen: list[Entry] = []
    result = await turn(Agent(ScriptedModel(call("lookup"), "x"), tools=[tool()], features=[Watch(seen.append)]))
    assert tuple(seen) == result.entries
    assert kind_of(seen[-1].body) == "turn.closed"


async def test_a11_the_same_watcher_given_twice_looks_once() -> None:
    """Two different ones look each (case A11: our watchers have no ids that could collide)."""
    one, two = list[Entry](), list[Entry]()
    watch = Watch(one.append)
    result = await turn(Agent(ScriptedModel("x"), features=[watch, Watch(two.append), watch]))
    assert tuple(one) == tuple(two) == result.entries


async def test_a_watcher_that_raises_is_noted_by_name_and_never_ends_a_turn() -> None:
    """The note names what it did not see; the watcher goes on looking."""
    seen: list[str] = []

    def broken(entry: Entry) -> None:
        seen.append(kind_of(entry.body))
        if kind_of(entry.body) == "said":
            raise ValueError("secret")

    result = await turn(Agent(ScriptedModel("x"), features=[Watch(broken, name="audit")]))
    assert result.text == "x"
    (noted,) = (e for e in result.entries if isinstance(e.body, Noted))
    assert isinstance(noted.body, Noted)
    assert (noted.body.by, noted.body.text) == ("audit", "watcher failed: ValueError")
    assert kind_of(result.entries[noted.cause or 0].body) == "said"
    assert seen[-1] == "turn.closed"


@pytest.mark.parametrize("awaited", [False, True])
async def test_a_watcher_that_always_raises_leaves_a_record_that_ends(awaited: bool) -> None:
    """Nothing follows the end of a take, and no note asks for another."""

    def broken(entry: Entry) -> Any:
        raise ValueError("x")

    async def late(entry: Entry) -> None:
        raise ValueError("x")

    feature = Watch(late, awaited=True) if awaited else Watch(broken)
    result = await turn(Agent(ScriptedModel("x"), features=[feature]))
    assert isinstance(result.entries[-1].body, ENDS)
    assert sum(isinstance(e.body, ENDS) for e in result.entries) == 1
    assert result.session is not None
    assert result.session.seq == len(result.entries)


async def test_an_awaited_watcher_is_waited_for_before_the_turn_is_over() -> None:
    """It may write each entry elsewhere, the last one too; the order is kept."""
    written: list[str] = []

    async def write(entry: Entry) -> None:
        await asyncio.sleep(0)
        written.append(kind_of(entry.body))

    result = await turn(Agent(ScriptedModel("x"), features=[Watch(write, awaited=True)]))
    assert written == kinds(result)


async def test_an_awaited_watcher_sees_the_end_of_every_turn() -> None:
    """One that pauses, and one that is denied."""
    written: list[str] = []

    async def write(entry: Entry) -> None:
        written.append(kind_of(entry.body))

    async def deny(turn: Turn, given: Any) -> Any:
        return Deny("no")

    watch = Watch(write, awaited=True)
    await turn(Agent(ScriptedModel(call("ask")), tools=[tool("ask", lambda *_: Ask("?"))], features=[watch]))
    assert written[-1] == "turn.paused"
    with pytest.raises(MessageDenied):
        await turn(Agent(ScriptedModel(), features=[watch, Named("deny", Hooks(on_input=deny))]))
    assert written[-1] == "turn.failed"


async def test_a_watcher_decides_nothing() -> None:
    """Whatever it returns."""
    result = await turn(Agent(ScriptedModel("x"), features=[Watch(lambda _: Deny("no"))]))
    assert result.text == "x"


async def test_a_cancelled_turn_leaves_no_watcher_behind() -> None:
    """What it was still owed is let go of, without a warning."""
    waiting = asyncio.Event()

    async def look(entry: Entry) -> None:
        """Would have looked at the end."""

    async def slow(args: object, ctx: object) -> None:
        waiting.set()
        await asyncio.Event().wait()

    agent: Agent[Any, Any] = Agent(
        ScriptedModel(call("slow")), tools=[tool("slow", slow)], features=[Watch(look, awaited=True)]
    )
    task = asyncio.ensure_future(turn(agent))
    await waiting.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_watcher_that_fails_over_the_note_of_another_is_noted() -> None:
    """Only over its own it is left alone."""

    def first(entry: Entry) -> None:
        if kind_of(entry.body) == "said":
            raise ValueError("x")

    def second(entry: Entry) -> None:
        if isinstance(entry.body, Noted):
            raise OSError("x")

    result = await turn(Agent(ScriptedModel("x"), features=[Watch(first, name="a"), Watch(second, name="b")]))
    told = [(n.by, n.text) for n in bodies(result, Noted)]
    assert told == [("a", "watcher failed: ValueError"), ("b", "watcher failed: OSError")]
