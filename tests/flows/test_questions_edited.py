"""A question to a person outlives edits of the flows: what nobody asks any more is let go, and its run goes on."""

from __future__ import annotations

from typing import Any

import pytest

from onrecord.conversation.inputs import Ask
from onrecord.flows import Collect, Do, Flow, Idle, Say
from onrecord.session import pack, unpack
from onrecord.testing import call
from onrecord.tools.tool import Tool
from onrecord.turn.options import Silenced
from tests.flows.playing import Play, ends, keys, lines, says
from tests.flows.test_questions import answer, asking_action, booking, with_rule

pytestmark = pytest.mark.unit

BOOK = Collect("model", id="s", prompt="Book it.")
ASKS = [[call("book")]]


def hotel(step: Any) -> Flow:
    """A flow with this step before its end."""
    return Flow("hotel", steps=[step, Say("Bye.", id="bye")])


async def edited(play: Play, *flows: Flow, **given: Any) -> Play:
    """A play that goes on with the session of another one, with other flows."""
    paused = await play.started("hotel", speak=[] if isinstance(play.flows.declared[0].steps[0], Do) else ASKS)
    assert paused.status == "paused"
    return with_rule(Play(*flows, session=unpack(pack(play.kept)), **given))


@pytest.mark.parametrize("yes", [True, False])
@pytest.mark.parametrize("step", [Collect("model", id="s", tools=[]), Collect("model", id="s", tools=["look"])])
async def test_a_step_that_may_not_call_its_tool_any_more_speaks_anew(step: Any, *, yes: bool) -> None:
    """The tool does not run, whatever the person decided; the message has the key of the visit."""
    ran: list[str] = []
    tools = [booking(ran), booking_named("look")]
    play = await edited(with_rule(Play(hotel(BOOK), tools=tools)), hotel(step), tools=tools)
    done = await answer(play, yes=yes, speak=[says("Which one?")])
    assert (ran, keys(done), play.statuses) == ([], ["hotel#k:s:1"], {"hotel": "asking"})
    assert all(c.status != "asked" for unit in play.kept.conversation.units for c in getattr(unit, "calls", ()))


async def test_a_tool_that_is_gone_is_let_go() -> None:
    """Nobody can run it: the step speaks anew."""
    play = await edited(with_rule(Play(hotel(BOOK), tools=[booking([])])), hotel(BOOK))
    assert keys(await answer(play, yes=True, speak=[says("Which one?")])) == ["hotel#k:s:1"]


async def test_a_talk_step_that_became_an_action_acts() -> None:
    """Under the key of the same visit."""
    ran: list[str] = []
    play = await edited(
        with_rule(Play(hotel(BOOK), tools=[booking(ran)])), hotel(Do("notify", id="s")), tools=[booking(ran)]
    )
    done = await answer(play, yes=True)
    assert ([key for key, _, _ in play.notified], ran) == (["hotel#k:s:1"], [])
    assert (keys(done), ends(done)) == (["hotel#k:bye:1"], [("hotel#k", "end")])


@pytest.mark.parametrize("step", [Do("notify", id="s"), BOOK, Say("Hi", id="s")], ids=["another action", "talk", "say"])
async def test_an_action_that_became_something_else_does_not_run(step: Any) -> None:
    """The run does what stands there now."""
    seen: list[str] = []
    confirm = asking_action(seen)
    play = await edited(Play(hotel(Do("confirm", id="s")), actions=[confirm]), hotel(step), actions=[confirm])
    talks = isinstance(step, Collect)
    done = await answer(play, yes=True, speak=[says("Which one?")] if talks else [])
    assert seen == []
    assert len(play.notified) == isinstance(step, Do)
    assert keys(done)[:1] == ["hotel#k:bye:1" if isinstance(step, Do) else "hotel#k:s:1"]


async def test_the_idle_speaker_may_lose_its_tool_too() -> None:
    """It answers without."""
    ran: list[str] = []
    play = with_rule(Play(tools=[booking(ran)], idle=Idle("Help.")))
    await play.said("Book it", speak=ASKS)
    other = with_rule(Play(tools=[booking(ran)], idle=Idle("Help.", tools=[]), session=unpack(pack(play.kept))))
    assert keys(await answer(other, yes=True, speak=[says("I cannot.")])) == ["idle:m1"]
    assert ran == []


async def test_an_answer_while_nobody_may_speak_leaves_the_floor_to_its_run() -> None:
    """It asks on, silently, and speaks with the next message."""
    ran: list[str] = []
    play = with_rule(Play(hotel(BOOK), tools=[booking(ran)]))
    await play.started("hotel", speak=ASKS)
    done = await answer(play, yes=True, options=[Silenced("human")])
    assert (done.messages, play.statuses, ran) == ((), {"hotel": "asking"}, [])
    assert keys(await play.said(judge={"fields": {}}, speak=[says("Which one?")])) == ["hotel#k:s:1"]


async def test_what_was_kept_for_an_answer_goes_with_its_question() -> None:
    """Also where no run waits for it: texts that were said do not stay behind in the state."""
    seen: list[str] = []
    note = Flow("hotel", steps=[Say("Noted.", id="n"), Do("confirm", id="s")])
    play = Play(note, actions=[asking_action(seen, on_message="drop")], idle="silent")
    await play.started("hotel")
    assert play.state.held is not None
    dropped = await play.said("Forget it")
    assert lines(dropped)[0] == ("s", "do", "failed", "question-gone")
    assert play.flows.state(play.kept).held is None


async def test_what_the_idle_speaker_kept_goes_too() -> None:
    """Its question was dropped by a message."""
    play = with_rule(Play(tools=[dropping()], idle=Idle("Help.")))
    await play.said("Book it", speak=[[call("drop")]])
    assert play.state.held is not None
    await play.said("Forget it", key="m2", speak=[says("Forgotten.")])
    assert play.state.held is None


def booking_named(name: str) -> Any:
    """Another tool."""
    return Tool(name, lambda *_: "seen")


def dropping() -> Any:
    """A tool whose question the next message drops."""

    async def drop(args: Any, ctx: Any) -> Any:
        return await ctx.ask(Ask("Sure?", on_message="drop"))

    return Tool("drop", drop)
