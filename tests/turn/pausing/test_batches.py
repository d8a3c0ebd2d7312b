"""A question in the middle of a batch: what ran stays, what follows waits, one person answers one question."""

from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.conversation.inputs import Answered, Ask, Happened
from onrecord.conversation.messages import Round
from onrecord.errors import FeatureFailed
from onrecord.testing import ScriptedModel, call
from onrecord.turn.moments import Deny, Hooks
from onrecord.turn.turn import Turn
from tests.turn.acting import Named, Result, results, texts, tool, turn
from tests.turn.pausing.asking import answered, approve, asks, checked, open_question, over, statuses

pytestmark = pytest.mark.unit

SAFE = ("a", "b", "c")


def batching(model: ScriptedModel, ran: list[str], *asking: str) -> Agent[Any, str]:
    """Three safe tools that run together, and ``late``, which runs alone; the named ones need an approval."""

    def handler(name: str) -> Any:
        def run(args: object, ctx: object) -> str:
            ran.append(name)
            return name

        return run

    safe = [tool(name, handler(name), read_only=True) for name in SAFE]
    return Agent(model, tools=[*safe, tool("late", handler("late"))], features=[approve(*asking)])


async def test_the_group_of_the_asker_finishes_and_later_calls_wait() -> None:
    """Calls before the asker keep their results, its neighbours run, what follows is settled with the answer."""
    ran: list[str] = []
    model = ScriptedModel([call("a"), call("b"), call("c"), call("late")], "Done.")
    agent = batching(model, ran, "b")
    paused = await turn(agent)
    question = open_question(paused)
    assert question.call is not None
    assert question.call.endswith("/c1")
    assert sorted(ran) == ["a", "c"]
    assert statuses(paused.session) == ["returned", "asked", "returned", "asked"]
    done = await answered(agent, paused, approved=True)
    assert sorted(ran) == ["a", "b", "c"]
    assert statuses(done.session) == ["returned", "returned", "returned", "not_run"]
    assert "the turn paused on 'b'" in texts(model.requests[1])[3]
    checked(agent, paused, done)


async def test_later_calls_are_settled_after_a_decline_too() -> None:
    """The model reads of each call what became of it, in order."""
    ran: list[str] = []
    model = ScriptedModel([call("b"), call("late")], "Then not.")
    agent = batching(model, ran, "b")
    paused = await turn(agent)
    done = await answered(agent, paused, approved=False)
    assert (ran, statuses(done.session)) == ([], ["denied", "not_run"])
    checked(agent, paused, done)


async def test_of_two_askers_the_first_in_call_order_holds_the_question() -> None:
    """The other one of its group is settled as not run, and may be asked for again."""
    ran: list[str] = []
    model = ScriptedModel([call("a"), call("b"), call("c")], [call("b")], "Done.")
    agent = batching(model, ran, "a", "b")
    first = await turn(agent)
    assert open_question(first).text == "Run a?"
    second = await answered(agent, first, approved=True)
    assert open_question(second).text == "Run b?"
    assert open_question(second).key != open_question(first).key
    assert statuses(second.session) == ["returned", "not_run", "returned", "asked"]
    done = await answered(agent, second, approved=True)
    assert ran.count("b") == 1
    checked(agent, first, second, done)


async def test_a_handler_that_asks_does_not_outrank_an_earlier_rule() -> None:
    """Whoever asks first in call order is asked about, though handlers run after all rules of their group."""
    model = ScriptedModel([call("a"), call("form")], "Done.")
    form = tool("form", asks(), read_only=True)
    agent = Agent(model, tools=[tool("a", read_only=True), form], features=[approve("a")])
    paused = await turn(agent)
    assert open_question(paused).text == "Run a?"
    done = await answered(agent, paused, approved=True)
    assert statuses(done.session) == ["returned", "not_run"]
    checked(agent, paused, done)


async def test_a_second_answer_to_the_same_question_is_stale() -> None:
    """A second click neither runs the action again nor answers the question that came after."""
    ran: list[str] = []
    model = ScriptedModel([call("a")], [call("b")])
    agent = batching(model, ran, "a", "b")
    first = await turn(agent)
    second = await answered(agent, first, approved=True)
    again = await answered(agent, second, key=open_question(first).key, approved=True)
    assert (again.status, again.changed, again.entries) == ("ignored", False, ())
    assert [line.code for line in again.lines] == ["stale-answer"]
    assert ran == ["a"]


async def test_an_answer_without_an_open_question_is_stale() -> None:
    """Nothing is filed, and no session comes of it."""
    agent = Agent(ScriptedModel())
    result = await turn(agent, Answered("s:said::k~0/q0", approved=True), session="s")
    assert (result.status, result.changed, result.session) == ("ignored", False, None)


async def held_open() -> tuple[Agent[Any, str], ScriptedModel, Result]:
    """An agent with one open question, whose other tools and hooks would ask as well."""
    model = ScriptedModel([call("pay")])
    agent = Agent(model, tools=[tool("pay"), tool("form", asks())], features=[approve("pay")])
    return agent, model, await turn(agent)


@pytest.mark.parametrize("name", ["pay", "form"])
async def test_a_session_has_one_open_question(name: str) -> None:
    """Another turn meanwhile cannot ask: its rule or handler is told so as a denial, and the first question stays."""
    agent, model, paused = await held_open()
    model.add([call(name)], "Later.")
    other = await turn(agent, "and this?", session=paused.session)
    assert (other.status, results(other)) == ("answered", [(name, "denied")])
    assert "answer another question first" in texts(model.requests[-1])[-1]
    assert other.session is not None
    assert other.session.question == open_question(paused)
    model.add("Done.")
    done = await turn(agent, Answered(open_question(paused).key, approved=True), session=other.session)
    checked(agent, paused, other, done)


async def test_a_reply_hook_cannot_ask_while_a_question_is_open() -> None:
    """There is no call to deny, so the turn fails by the hook's name, and the first question stays."""

    async def curious(turn: Turn, held: Round) -> Round | Ask:
        return Ask("Sure?")

    agent, model, paused = await held_open()
    model.add("Hm.")
    asking = agent.with_(features=[approve("pay"), Named("curious", Hooks(on_reply=curious))])
    with pytest.raises(FeatureFailed, match="'curious'") as told:
        await turn(asking, "and this?", session=paused.session)
    assert told.value.result is not None
    assert told.value.result.session is not None
    assert told.value.result.session.question == open_question(paused)


async def test_events_and_wakes_run_while_a_question_is_open() -> None:
    """Only a message meets the question; the paused turn waits beside everything else."""
    agent, model, paused = await held_open()
    model.add("Noted.")
    other = await turn(agent, Happened("rain", key="e1"), session=paused.session)
    assert other.status == "answered"
    model.add("Done.")
    done = await answered(agent, over(other, paused), approved=True)
    assert (done.status, statuses(done.session)) == ("answered", ["returned"])
    checked(agent, paused, other, done)


async def test_an_approved_call_may_still_be_denied_behind_the_asker() -> None:
    """An approval answers one rule; a rule behind it may halt the turn."""

    async def halts(turn: Turn, call: Any) -> Deny:
        return Deny("enough", halt=True)

    ran: list[str] = []
    asking = [approve("a"), Named("halts", Hooks(before_tool=halts))]
    agent = batching(ScriptedModel([call("a"), call("late")]), ran).with_(features=asking)
    paused = await turn(agent)
    done = await answered(agent, paused, approved=True)
    assert (ran, done.status, statuses(done.session)) == ([], "silent", ["denied", "not_run"])
    checked(agent, paused, done)


async def test_a_tool_that_asks_holds_the_question_before_a_later_call_whose_rule_asks() -> None:
    """Order of calls decides, though the rule of the other asked first."""
    tools = [tool("a", lambda *_: Ask("Which?"), read_only=True), tool("b", read_only=True)]
    agent = Agent(ScriptedModel([call("a"), call("b")]), tools=tools, features=[approve("b")])
    question = open_question(await turn(agent))
    assert (question.text, question.by) == ("Which?", "a")
