"""A person stops the reply: what was shown is kept, what only reads is cut, what has effects is waited for."""

import asyncio
from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.conversation.content import Text
from onrecord.conversation.conversation import INTERRUPTED
from onrecord.conversation.inputs import Answered, Interruption, Said
from onrecord.conversation.messages import AssistantMessage
from onrecord.errors import ModelError
from onrecord.governance.rules import before_tool, on_input
from onrecord.record.kinds import ToolReturned, TurnInterrupted
from onrecord.testing import ScriptedModel, call
from onrecord.turn import turn as turn_module
from onrecord.turn.moments import Allow, Hooks
from onrecord.turn.turn import Turn
from tests.turn.acting import Named, Result, bodies, kinds, results, texts, tool
from tests.turn.interrupting.live import WAIT, Halting, Live, interrupted, until
from tests.turn.pausing.asking import approve, checked, open_question

pytestmark = pytest.mark.unit


def answer(result: Result) -> AssistantMessage:
    """The last message, which is the assistant's."""
    assert result.session is not None
    last = result.session.conversation.messages[-1]
    assert isinstance(last, AssistantMessage)
    return last


async def test_what_was_shown_is_kept_and_marked() -> None:
    """The provider call ends, nothing is to be delivered, and the next turn shows the model where it was cut."""
    model = Halting(("It costs ", "eighty", WAIT, " euros"), ("Eighty euros.",))
    agent = Agent(model)
    result = await interrupted(Live(agent), model.waiting)
    assert model.closed == ["CancelledError"]
    assert (result.messages, result.wakes, result.text) == ((), (), "")
    (ended,) = bodies(result, TurnInterrupted)
    assert (ended.cause, ended.shown, kinds(result)[-1]) == ("stopped", (Text("It costs eighty"),), "turn.interrupted")
    assert (answer(result).text, answer(result).interrupted) == ("It costs eighty", "stopped")
    model.gate.set()
    again = await Live(agent, "and?", session=result.session or "").task
    shown = [getattr(unit, "text", "") for unit in model.requests[1].conversation.units]
    assert shown == ["hi", f"It costs eighty {INTERRUPTED}", "and?"]
    checked(agent, result, again)


async def test_nothing_is_kept_of_words_that_nobody_saw() -> None:
    """Without a live reader the reply so far was shown to no one; what the person wrote stays."""
    model = Halting(("It costs", WAIT))
    agent = Agent(model)
    result = await interrupted(Live(agent, read=False), model.waiting)
    assert result.session is not None
    assert [type(m).__name__ for m in result.session.conversation.messages] == ["UserMessage"]
    checked(agent, result)


async def test_a_handler_that_only_reads_is_cancelled() -> None:
    """The model will read that its outcome is unknown."""
    began, ended = asyncio.Event(), list[str]()

    async def look(args: object, ctx: object) -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    agent = Agent(ScriptedModel([call("look"), call("pay")]), tools=[tool("look", look, read_only=True), tool("pay")])
    result = await interrupted(Live(agent), began)
    assert (ended, results(result)) == (["cancelled"], [("look", "cancelled"), ("pay", "not_run")])
    assert "its outcome is unknown" in str(bodies(result, ToolReturned)[0].result)
    assert [c.status for r in answer(result).rounds for c in r.calls] == ["cancelled", "not_run"]
    checked(agent, result)


async def test_a_handler_with_effects_is_waited_for() -> None:
    """Its result is recorded, and no further call of the round runs."""
    began, gate, ran = asyncio.Event(), asyncio.Event(), list[str]()

    async def pay(args: object, ctx: object) -> str:
        began.set()
        await gate.wait()
        return "paid"

    agent = Agent(
        ScriptedModel([call("pay"), call("other")]), tools=[tool("pay", pay), tool("other", lambda *_: ran.append("x"))]
    )
    live = Live(agent)
    await until(began)
    live.interrupt()
    await asyncio.sleep(0)
    assert not live.task.done()
    gate.set()
    result = await live.task
    assert (result.status, results(result), ran) == ("interrupted", [("pay", "returned"), ("other", "not_run")], [])
    assert [c.status for r in answer(result).rounds for c in r.calls] == ["returned", "not_run"]
    checked(agent, result)


async def test_past_the_limit_a_handler_is_cancelled_and_said_to_be_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """A started call that may have changed something gets a while to end, not for ever."""
    monkeypatch.setattr(turn_module, "SETTLE_S", 0)
    began = asyncio.Event()

    async def stuck(args: object, ctx: object) -> None:
        began.set()
        await asyncio.Event().wait()

    agent = Agent(ScriptedModel([call("pay")]), tools=[tool("pay", stuck)])
    result = await interrupted(Live(agent), began)
    assert results(result) == [("pay", "cancelled")]
    checked(agent, result)


async def test_of_calls_that_run_together_each_is_told_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """One had ended, one only reads, one is past the limit: what is known is recorded, the rest said to be unknown."""
    monkeypatch.setattr(turn_module, "SETTLE_S", 0)
    began = asyncio.Event()

    async def stuck(args: object, ctx: object) -> None:
        began.set()
        await asyncio.Event().wait()

    async def quick(args: object, ctx: object) -> str:
        return "quick"

    agent = Agent(
        ScriptedModel([call("quick"), call("look"), call("stuck")]),
        tools=[
            tool("quick", quick, concurrency_safe=True),
            tool("look", stuck, read_only=True),
            tool("stuck", stuck, concurrency_safe=True),
        ],
    )
    result = await interrupted(Live(agent), began)
    assert results(result) == [("quick", "returned"), ("look", "cancelled"), ("stuck", "cancelled")]
    checked(agent, result)


async def test_a_reading_handler_does_not_hold_up_an_interruption() -> None:
    """Beside one with effects it is cut at once, and the other one's end ends the turn."""
    began, gate = asyncio.Event(), asyncio.Event()

    async def look(args: object, ctx: object) -> None:
        await asyncio.Event().wait()

    async def pay(args: object, ctx: object) -> str:
        began.set()
        await gate.wait()
        return "paid"

    agent = Agent(
        ScriptedModel([call("look"), call("pay")]),
        tools=[tool("look", look, read_only=True), tool("pay", pay, concurrency_safe=True)],
    )
    live = Live(agent)
    await until(began)
    live.interrupt()
    gate.set()
    result = await live.task
    assert results(result) == [("look", "cancelled"), ("pay", "returned")]
    checked(agent, result)


async def test_a_handler_that_was_waited_for_leaves_no_alarm_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit ends with the turn: whoever awaited it is not cancelled later."""
    monkeypatch.setattr(turn_module, "SETTLE_S", 0.0)
    began: list[Turn] = []

    async def pay(args: object, ctx: Any) -> str:
        ctx.turn.interrupt(Interruption(id="i", turn=ctx.turn.id))
        began.append(ctx.turn)
        return "paid"

    agent = Agent(ScriptedModel([call("pay")]), tools=[tool("pay", pay)])
    result = await agent.turn("hi", session="s")
    for _ in range(5):
        await asyncio.sleep(0)
    assert (result.status, results(result)) == ("interrupted", [("pay", "returned")])
    task = asyncio.current_task()
    assert task is not None
    assert (task.cancelling(), began[0].limit is not None and began[0].limit.cancelled()) == (0, True)


async def test_an_interruption_from_inside_the_turn_ends_it_too() -> None:
    """A model, a rule or a reader that interrupts synchronously: the caller gets a result, not a cancellation."""
    live: list[Live] = []

    def stops(request: object) -> str:
        live[0].interrupt()
        return "never shown to be answered"

    agent = Agent(ScriptedModel(stops))
    live.append(Live(agent))
    result = await live[0].task
    assert result.status == "interrupted"
    checked(agent, result)


async def test_the_first_interruption_stands() -> None:
    """A second one is told that the turn is ending already."""
    model = Halting(("Hello", WAIT))
    live = Live(Agent(model))
    await until(model.waiting)
    assert (live.interrupt("i1", "spoken over"), live.interrupt("i2", "stopped")) == (True, False)
    assert answer(await live.task).interrupted == "spoken over"


async def test_interruptions_of_two_turns_may_share_an_id() -> None:
    """What a channel calls its interruptions is not ours: each turn that it cuts is cut, on the record too."""
    model = Halting(("One", WAIT), ("Two", WAIT))
    agent = Agent(model)
    first = await interrupted(Live(agent), model.waiting)
    model.waiting.clear()
    second = await interrupted(Live(agent, session=first.session or ""), model.waiting)
    assert answer(second).text == "Two"
    checked(agent, first, second)


async def test_completed_rounds_stay() -> None:
    """A turn cut in its second round keeps the first one with its results."""
    model = Halting((call("look"),), ("So", WAIT))
    agent = Agent(model, tools=[tool("look")])
    result = await interrupted(Live(agent), model.waiting)
    assert [c.status for r in answer(result).rounds for c in r.calls] == ["returned"]
    assert answer(result).text == "So"
    assert result.session is not None
    assert [type(u).__name__ for u in result.session.conversation.units] == ["UserMessage", "Round", "Round"]
    checked(agent, result)


async def test_an_interruption_before_a_call_runs_leaves_it_not_run() -> None:
    """A rule before the tool that interrupts, or is interrupted: the handler never starts."""
    ran: list[str] = []

    @before_tool
    async def stops(turn: Turn, call: object) -> Allow[Any]:
        turn.interrupt(Interruption(id="i", turn=turn.id))
        return Allow()

    agent = Agent(
        ScriptedModel([call("pay")]), tools=[tool("pay", lambda *_: ran.append("pay"))], features=[stops]
    )  # fmt: skip
    result = await Live(agent).task
    assert (result.status, ran, results(result)) == ("interrupted", [], [("pay", "not_run")])
    assert "tool.started" not in kinds(result)
    checked(agent, result)


async def test_a_model_that_turns_a_cut_into_an_error_changes_nothing() -> None:
    """The turn was interrupted; that its wire says it otherwise is not a failure of the model."""

    class Sour(Halting):
        async def stream(self, request: Any, /) -> Any:
            try:
                async for chunk in super().stream(request):
                    yield chunk
            except asyncio.CancelledError as cut:
                raise ModelError("aborted", kind="aborted") from cut

    model = Sour(("Hello", WAIT))
    agent = Agent(model)
    result = await interrupted(Live(agent, read=False), model.waiting)
    assert kinds(result)[-1] == "turn.interrupted"
    checked(agent, result)


async def test_data_and_folds_stand_as_before_the_turn() -> None:
    """Only what people saw, the inputs and the interruption itself are kept of an unfinished take."""

    def setter(args: object, ctx: Any) -> str:
        ctx.set({"room": 7})
        return "ok"

    model = Halting((call("set"),), ("So", WAIT))
    agent = Agent(model, tools=[tool("set", setter)])
    result = await interrupted(Live(agent, Said("hi", key="k1")), model.waiting)
    assert result.session is not None
    assert (result.session.data, result.session.inputs) == ({}, ("said::k1",))
    assert result.session.interruptions == ("i1",)


async def test_a_watcher_or_settle_hook_may_be_cut_too() -> None:
    """However late it comes, the turn ends as interrupted and keeps what was said before."""
    at = asyncio.Event()

    async def settles(turn: Turn) -> None:
        at.set()
        await asyncio.Event().wait()

    agent = Agent(ScriptedModel("All done."), features=[Named("slow", Hooks(on_settle=settles))])
    result = await interrupted(Live(agent), at)
    assert (answer(result).text, result.messages) == ("All done.", ())
    checked(agent, result)


async def test_a_resumed_turn_that_is_interrupted_closes_its_question() -> None:
    """Also while an input rule still looks at the answer; no place in the turn is used twice."""
    at = asyncio.Event()

    @on_input
    async def slow(turn: Turn, given: Any) -> Allow[Any]:
        if turn.answer is not None:
            at.set()
            await asyncio.Event().wait()
        return Allow()

    agent = Agent(ScriptedModel([call("pay")]), tools=[tool("pay")], features=[slow, approve("pay")])
    paused = await Live(agent).task
    question = open_question(paused)
    live = Live(agent, Answered(question.key, approved=True), session=paused.session or "")
    result = await interrupted(live, at)
    assert result.session is not None
    assert result.session.question is None
    checked(agent, paused, result)


async def test_results_of_a_cut_round_are_shown_to_the_model_next_time() -> None:
    """The next request shows every call of the cut round with what became of it."""
    began = asyncio.Event()

    async def look(args: object, ctx: object) -> None:
        began.set()
        await asyncio.Event().wait()

    model = ScriptedModel([call("look"), call("pay")], "Better now.")
    agent = Agent(model, tools=[tool("look", look, read_only=True), tool("pay")])
    result = await interrupted(Live(agent), began)
    again = await Live(agent, "again", session=result.session or "").task
    assert ["Cancelled" in t or "Not executed" in t for t in texts(model.requests[1])] == [True, True]
    checked(agent, result, again)
