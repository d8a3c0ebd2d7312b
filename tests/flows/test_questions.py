"""A person is asked inside a flow: the run waits, and comes back to the same visit of the same step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from onrecord.conversation.inputs import Answered, Ask, Said, approved, declined
from onrecord.flows import Chain, Collect, Do, Failed, Flow, Idle, Ok, OnMention, OnMessage, Say, Talk
from onrecord.governance.rules import before_tool
from onrecord.jsonio import Json
from onrecord.session import pack, unpack
from onrecord.testing import call
from onrecord.tools.tool import Tool, ToolContext, ToolResult
from onrecord.turn.moments import Allow
from tests.flows.playing import Play, ends, keys, lines, said_by, says, starts

pytestmark = pytest.mark.unit


def booking(ran: list[str]) -> Tool:
    """A tool that books, once a person agrees."""

    def book(args: Mapping[str, Json], ctx: ToolContext[Any]) -> ToolResult:
        ran.append(ctx.key)
        return ToolResult({"code": "R1"}, data={"model": "R1"})

    return Tool("book", book, destructive=True)


@before_tool
async def needs_a_person(turn: Any, asked: Any) -> Any:
    """Nobody books without one."""
    return Ask("Book it?") if asked.name == "book" else Allow()


def with_rule(play: Play) -> Play:
    """The same play, whose agent asks a person before it books."""
    play.agent = play.agent.with_(features=[needs_a_person])
    return play


HOTEL = Flow(
    "hotel", on=[OnMessage("wants a room")],
    steps=[Collect("name", "model", id="book", prompt="Book it."), Say("Bye, {{data.name}}.", id="bye")],
)  # fmt: skip


async def ask_to_book(ran: list[str], *flows: Flow, **given: Any) -> Play:
    """A hotel's agent that has asked whether it may book."""
    play = with_rule(Play(HOTEL, *flows, tools=[booking(ran)], **given))
    asks = [[*says("A moment.", name="Rui").chunks, call("book")]]
    paused = await play.said("A room, I am Rui", judge={"flows": {"hotel": 90}, "fields": {}}, speak=asks)
    assert (paused.status, said_by(paused)) == ("paused", [])
    assert paused.question is not None
    assert lines(paused)[-1] == ("book", "collect", "waiting", "awaiting-answer")
    run = play.run("hotel")
    assert run.waiting is not None
    assert (run.status, run.waiting.kind, run.waiting.key) == ("waiting", "answer", paused.question.key)
    return play


async def answer(play: Play, *, yes: bool, **how: Any) -> Any:
    """A person decides, after the session was stored and loaded."""
    play.session = unpack(pack(play.kept))
    question = play.kept.question
    assert question is not None
    return await play.took(approved(question, by="ana") if yes else declined(question, by="ana"), **how)


async def test_an_approved_call_runs_and_its_step_goes_on() -> None:
    """What the model reported before the question counts, and the message has the key of its visit."""
    ran: list[str] = []
    play = await ask_to_book(ran)
    done = await answer(play, yes=True, speak=[says("Booked: R1.")])
    assert len(ran) == 1
    assert said_by(done) == [("Booked: R1.", "ai", "hotel#m1:book:1"), ("Bye, Rui.", "verbatim", "hotel#m1:bye:1")]
    assert play.data == {"name": "Rui", "model": "R1"}
    assert ends(done) == [("hotel#m1", "end")]
    assert play.state.held is None


async def test_a_declined_call_does_not_run_and_its_step_asks_on() -> None:
    """The model reads that it was declined, and says so."""
    ran: list[str] = []
    play = await ask_to_book(ran)
    done = await answer(play, yes=False, speak=[says("It cannot be booked. Another one?")])
    assert (ran, keys(done)) == ([], ["hotel#m1:book:1"])
    assert play.run("hotel").status == "asking"
    assert dict(play.run("hotel").asked) == {"model": 1}


async def test_other_messages_go_on_while_a_person_is_asked() -> None:
    """Nobody has the floor meanwhile, so the idle speaker answers; the answer then finds the run where it waits."""
    ran: list[str] = []
    play = await ask_to_book(ran)
    meanwhile = await play.said("Is there a pool?", key="m2", speak=[says("There is.")])
    assert keys(meanwhile) == ["idle:m2"]
    done = await answer(play, yes=True, speak=[says("Booked.")])
    assert (keys(done)[0], len(ran)) == ("hotel#m1:book:1", 1)


async def test_who_took_the_floor_meanwhile_gives_it_back() -> None:
    """The run that asked a person speaks now; the other one waits behind it, and asks again when it is done."""
    ran: list[str] = []
    play = await ask_to_book(ran, Flow("help", on=[OnMessage("has a problem")], steps=[Collect("ok", id="q")]))
    await play.said("The key is lost", key="m2", speak=[says("Is it?")])
    assert play.statuses == {"hotel": "waiting", "help": "asking"}
    done = await answer(play, yes=True, speak=[says("Booked.")])
    assert keys(done) == ["hotel#m1:book:1", "hotel#m1:bye:1"]
    assert play.statuses == {"help": "asking"}


def asking_action(seen: list[str], *, on_message: str = "hold") -> Tool:
    """An action that asks a person itself."""

    async def confirm(args: Mapping[str, Json], ctx: ToolContext[Any]) -> Any:
        given = await ctx.ask(Ask("Charge the card?", on_message=on_message))  # type: ignore[arg-type]  # one of three
        seen.append(ctx.key)
        return Ok("charged") if given.approved else Failed("not charged")

    return Tool("confirm", confirm)


PAY = Flow(
    "pay",
    steps=[Do("confirm", id="c", on_fail="no"), Say("Paid.", id="yes", then="end"), Say("Not paid.", id="no")],
)


@pytest.mark.parametrize(("yes", "said"), [(True, "Paid."), (False, "Not paid.")])
async def test_an_action_may_ask(*, yes: bool, said: str) -> None:
    """It runs again with the answer, under the step's own key, and the run goes where its result says."""
    seen: list[str] = []
    play = Play(PAY, actions=[asking_action(seen)])
    paused = await play.started("pay")
    assert paused.status == "paused"
    done = await answer(play, yes=yes)
    assert [m.text for m in done.messages] == [said]
    assert seen == ["pay#k:c:1"]
    assert ends(done) == [("pay#k", "end")]


async def test_an_action_may_ask_twice_in_one_moment() -> None:
    """Each question is told, also where the clock has not moved, and each answer is had once."""
    given: list[bool | None] = []

    async def confirm(args: Mapping[str, Json], ctx: ToolContext[Any]) -> Ok:
        given[:] = [(await ctx.ask(Ask("Charge?"))).approved, (await ctx.ask(Ask("Really?"))).approved]
        return Ok()

    play = Play(PAY, actions=[Tool("confirm", confirm)])
    for asked in (await play.started("pay"), await answer(play, yes=False)):
        assert asked.question is not None
        assert [(each.code, each.detail) for each in asked.outcomes] == [("awaiting-answer", asked.question.key)]
    done = await answer(play, yes=True)
    assert (given, [m.text for m in done.messages]) == ([False, True], ["Paid."])


async def test_runs_behind_the_one_that_asks_move_when_it_is_answered() -> None:
    """None of them is forgotten, and none acts twice."""
    seen: list[str] = []
    first = Flow("first", on=[OnMention("a")], steps=[Do("confirm", id="c")])
    second = Flow("second", on=[OnMention("b")], steps=[Do("notify", id="n")])
    play = Play(first, second, actions=[asking_action(seen)], idle="silent")
    paused = await play.said(judge={"mentions": {"first": True, "second": True}})
    assert (paused.status, starts(paused), play.notified) == ("paused", ["first#m1", "second#m1"], [])
    done = await answer(play, yes=True)
    assert [key for key, _, _ in play.notified] == ["second#m1:n:1"]
    assert (seen, ends(done)) == (["first#m1:c:1"], [("first#m1", "end"), ("second#m1", "end")])


async def test_what_was_said_before_the_question_is_known_behind_it() -> None:
    """The customer got an answer already, so nobody else answers the same message."""
    seen: list[str] = []
    note = Flow("note", on=[OnMention("a")], steps=[Say("Noted.", id="s"), Do("confirm", id="c")])
    asks = Flow("intake", on=[OnMessage("x")], steps=[Collect("ok", id="q")])
    play = Play(note, asks, actions=[asking_action(seen)])
    paused = await play.said(judge={"mentions": {"note": True}})
    assert [m.text for m in paused.messages] == ["Noted."]
    done = await answer(play, yes=True)
    assert (done.messages, lines(done)[-1]) == ((), ("q", "collect", "skipped", "another-reply"))


async def test_the_idle_speaker_may_wait_for_a_person_too() -> None:
    """It goes on where it was, under its own key."""
    ran: list[str] = []
    play = with_rule(Play(tools=[booking(ran)], idle=Idle("Help.")))
    paused = await play.said("Book it", speak=[[call("book")]])
    assert paused.status == "paused"
    done = await answer(play, yes=True, speak=[says("Booked.")])
    assert (said_by(done), len(ran)) == ([("Booked.", "ai", "idle:m1")], 1)
    assert lines(done) == [(None, "idle", "ok", None)]


async def test_a_message_without_a_key_is_answered_under_that_of_its_first_moment() -> None:
    """The call that was approved later runs, and the message has the key that it would have had at once."""
    ran: list[str] = []
    play = with_rule(Play(tools=[booking(ran)], idle=Idle("Help.")))
    await play.said("Book it", key=None, speak=[[call("book")]])
    play.clock.advance(minutes=5)
    done = await answer(play, yes=True, speak=[says("Booked.")])
    assert (keys(done), len(ran)) == (["idle:2026-09-20T10:00:00.000Z"], 1)


async def test_a_dropped_question_lets_its_action_fail() -> None:
    """The run goes on by its way for failures, in the turn of the message that dropped it."""
    seen: list[str] = []
    play = Play(PAY, actions=[asking_action(seen, on_message="drop")], idle="silent")
    await play.started("pay")
    done = await play.said("Forget it")
    assert [m.text for m in done.messages] == ["Not paid."]
    assert (seen, lines(done)[0]) == ([], ("c", "do", "failed", "question-gone"))


async def test_a_message_may_be_the_answer() -> None:
    """It resumes the turn that waits, and is no turn of its own."""
    seen: list[str] = []
    play = Play(PAY, actions=[asking_action(seen, on_message="answer")])
    await play.started("pay")
    done = await play.took(Said("yes", key="m9"))
    assert [m.text for m in done.messages] == ["Not paid."]  # a text is no approval
    assert seen == ["pay#k:c:1"]


async def test_an_answer_for_a_flow_that_is_gone_leaves_no_call_open() -> None:
    """The call is told as it is, the run ends, and the conversation can go on."""
    ran: list[str] = []
    play = await ask_to_book(ran)
    question = play.kept.question
    assert question is not None
    other = with_rule(Play(tools=[booking(ran)], session=unpack(pack(play.kept))))
    done = await other.took(approved(question, by="ana"))
    assert [each.code for each in done.lines] == ["flow-gone", "skipped"]
    assert ran == []
    assert all(c.status != "asked" for u in other.kept.conversation.units for c in getattr(u, "calls", ()))
    assert (await other.said(key="m2", speak=[says("Yes?")])).status == "answered"


async def test_a_stale_answer_changes_nothing() -> None:
    """It was answered, or never asked."""
    ran: list[str] = []
    play = await ask_to_book(ran)
    question = play.kept.question
    assert question is not None
    await answer(play, yes=True, speak=[says("Booked.")])
    again = await play.took(Answered(question.key, approved=True))
    assert (again.status, again.changed, len(ran)) == ("ignored", False, 1)


async def test_a_chain_after_an_answer_has_the_floor() -> None:
    """A child of the run that came back speaks in the same turn."""
    seen: list[str] = []
    pay = Flow("pay", steps=[Do("confirm", id="c", then=Chain("thanks"))])
    play = Play(pay, Flow("thanks", steps=[Talk("Say thanks.", id="t")]), actions=[asking_action(seen)])
    await play.started("pay")
    done = await answer(play, yes=True, speak=[says("Thanks!")])
    assert keys(done) == ["thanks#pay#k:c:1:t:1"]
