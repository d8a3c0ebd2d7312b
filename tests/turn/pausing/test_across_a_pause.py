"""What goes on across a pause: a waiting answer, a child that may not ask, what was spent, a halt."""

from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.conversation.inputs import Ask, approved
from onrecord.conversation.messages import Round, ToolCall
from onrecord.conversation.usage import Usage
from onrecord.governance.rules import before_tool, on_output
from onrecord.record.kinds import ToolReturned
from onrecord.testing import FakeEffects, ScriptedModel, call, reply
from onrecord.turn.moments import Allow, Answer, Deny, Hooks, Revise, Stop
from onrecord.turn.take import Order, take
from onrecord.turn.turn import Turn
from tests.turn.acting import Named, bodies, tool, turn
from tests.turn.pausing.asking import answered, approve, asks, open_question

pytestmark = pytest.mark.unit


async def test_a_reply_hook_may_ask_about_a_final_answer() -> None:
    """Answered, the words that wait are said; the model is not asked for others."""

    async def sure(turn: Turn, held: Round) -> Round | Ask:
        return held if turn.resumed is not None else Ask("Send this?")

    model = ScriptedModel("The words.", "Other words.")
    agent = Agent(model, features=[Named("sure", Hooks(on_reply=sure))])
    done = await answered(agent, await turn(agent), approved=True)
    assert (done.status, done.text, model.calls) == ("answered", "The words.", ["speak"])


async def test_a_child_that_may_not_ask_is_not_left_paused() -> None:
    """While another question is open, a sub-agent's question is denied inside it, and its turn ends."""
    model = ScriptedModel([call("pay")])
    clerk = Agent(model, name="clerk", tools=[tool("order", asks())])
    agent = Agent(model, tools=[tool("pay"), clerk.as_tool()], features=[approve("pay")])
    paused = await turn(agent)
    model.add([call("clerk", message="go")], [call("order")], "I cannot ask now.", "Later.")
    other = await turn(agent, "and this?", session=paused.session)
    assert [child.status for child in other.children] == ["answered"]


async def test_what_a_child_spent_is_told_over_its_pauses() -> None:
    """The entry of its call holds all of it."""
    used = Usage(input_tokens=10)
    model = ScriptedModel(
        [call("clerk", message="go")], reply(call("order"), usage=used), reply("Ordered.", usage=used), "Done."
    )
    clerk = Agent(model, name="clerk", tools=[tool("order", asks())])
    agent = Agent(model, tools=[clerk.as_tool()])
    done = await answered(agent, await turn(agent), value="XL")
    assert bodies(done, ToolReturned)[-1].spent == used + used


async def test_a_halt_beside_a_question_ends_the_turn_when_it_is_answered() -> None:
    """The model is not asked again."""

    @before_tool
    async def strict(turn: Turn, call: ToolCall) -> Allow[Any] | Deny | Ask:
        return Ask("Pay?") if call.name == "pay" else Deny("enough", halt=True)

    model = ScriptedModel([call("pay"), call("never")], "More.")
    tools = [tool("pay", read_only=True), tool("never", read_only=True)]
    agent = Agent(model, tools=tools, features=[strict])
    done = await answered(agent, await turn(agent), approved=True)
    assert (done.text, model.calls) == ("", ["speak"])


async def test_a_stop_that_wraps_up_still_does_behind_a_question() -> None:
    """The one last request comes once the question is answered."""

    @before_tool
    async def last(turn: Turn, call: ToolCall) -> Ask:
        turn.stop(Stop("enough", wrap_up=True))
        return Ask("Pay?")

    model = ScriptedModel([call("pay")], "That is all.")
    agent = Agent(model, tools=[tool("pay")], features=[last])
    done = await answered(agent, await turn(agent), approved=True)
    assert (done.text, model.calls) == ("That is all.", ["speak", "wrap_up"])


async def test_every_attempt_at_an_answer_is_a_take_of_its_own() -> None:
    """A take that was given up had its number; the next attempt goes on behind it."""
    agent = Agent(ScriptedModel([call("pay")], "Paid."), tools=[tool("pay")], features=[approve("pay")])
    paused = await turn(agent)
    given = approved(open_question(paused), by="Ana")
    assert paused.session is not None
    done = await take(agent.plan, Order(input=given, session=paused.session, attempt=3), FakeEffects())
    assert {entry.take for entry in paused.entries} == {1}
    assert {entry.take for entry in done.entries} == {4}


async def test_revisions_asked_for_before_a_pause_are_used_up_behind_it() -> None:
    """All of them: the budget is the turn's."""

    @on_output(revisions=2)
    async def strict(turn: Turn, answer: Answer) -> Revise:
        return Revise("no")

    model = ScriptedModel("one", "two", [call("pay")], "three")
    agent = Agent(model, tools=[tool("pay")], features=[strict, approve("pay")])
    done = await answered(agent, await turn(agent), approved=True)
    assert (done.text, model.calls) == ("three", ["speak"] * 4)
