"""Whoever asked is called again, and asking returns the recorded answer."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.conversation.inputs import Ask, AskField
from onrecord.conversation.messages import Round, ToolCall
from onrecord.governance.rules import before_tool
from onrecord.jsonio import Json
from onrecord.testing import ScriptedModel, call
from onrecord.tools.tool import Tool, ToolContext
from onrecord.turn.moments import Allow, Hooks
from onrecord.turn.turn import Turn
from tests.turn.acting import Named, kinds, results, texts, tool, turn, verdicts
from tests.turn.pausing.asking import answered, approve, asks, checked, open_question, sizes, statuses

pytestmark = pytest.mark.unit


def paying(model: ScriptedModel, *ran: Any, **given: Any) -> Agent[Any, str]:
    """An agent whose payment needs an approval; what ran is kept in the given list."""
    kept = ran[0] if ran else []
    pay = tool("pay", lambda args, _: kept.append(dict(args)) or "paid")
    return Agent(model, tools=[pay, tool("look")], features=[approve("pay")], **given)


async def test_a_rule_asks_and_an_approval_lets_the_call_run() -> None:
    """The turn pauses before the handler; approved, the call runs once, and the model reads its result."""
    ran: list[object] = []
    model = ScriptedModel([call("pay", euros=8)], "Done.")
    agent = paying(model, ran)
    paused = await turn(agent)
    question = open_question(paused)
    assert (question.text, question.by, question.audience) == ("Run pay?", "approval", "approver")
    assert question.call is not None
    assert question.call.endswith("/r0/c0")
    assert (ran, kinds(paused)[-1], paused.messages) == ([], "turn.paused", ())
    done = await answered(agent, paused, approved=True, by="ana")
    assert (done.text, ran) == ("Done.", [{"euros": 8}])
    assert texts(model.requests[1]) == ["paid"]
    assert kinds(done)[0] == "turn.resumed"
    assert "turn.input" not in kinds(done)
    checked(agent, paused, done)


@pytest.mark.parametrize(
    ("answer", "read"),
    [
        ({"approved": False}, "Declined by a person."),
        ({"approved": False, "by": "ana"}, "Declined by ana"),
        ({"approved": False, "by": "ana", "note": "too dear"}, "Declined by ana: too dear"),
    ],
)
async def test_only_an_approval_lets_a_call_run(answer: dict[str, Any], read: str) -> None:
    """Declined with or without a note, the call is denied and its model told so."""
    ran: list[object] = []
    model = ScriptedModel([call("pay")], "Then not.")
    agent = paying(model, ran)
    paused = await turn(agent)
    done = await answered(agent, paused, **answer)
    assert texts(model.requests[1])[0].rstrip(".") == read.rstrip(".")
    assert (ran, results(done)) == ([], [("pay", "denied")])
    assert ("before_tool", "approval", "deny", "declined") in verdicts(done)
    checked(agent, paused, done)


async def test_the_chain_goes_on_behind_the_rule_that_asked() -> None:
    """Rules before the asker are not called again, those behind it see the arguments as they then stood."""
    seen: list[tuple[str, Mapping[str, Json]]] = []

    @before_tool
    async def doubles(turn: Turn, call: ToolCall) -> Allow[Mapping[str, Json]]:
        seen.append(("doubles", call.args))
        return Allow({"euros": 2 * call.args["euros"]}, "doubled")

    @before_tool
    async def looks(turn: Turn, call: ToolCall) -> Allow[Mapping[str, Json]]:
        seen.append(("looks", call.args))
        return Allow()

    pay = tool("pay", lambda args, _: args["euros"])
    model = ScriptedModel([call("pay", euros=4)], "Done.")
    agent = Agent(model, tools=[pay], features=[doubles, approve("pay"), looks])
    paused = await turn(agent)
    done = await answered(agent, paused, approved=True)
    assert seen == [("doubles", {"euros": 4}), ("looks", {"euros": 8})]
    assert texts(model.requests[1]) == ["8"]
    checked(agent, paused, done)


async def test_two_rules_of_one_name_are_told_apart() -> None:
    """Rules from one factory share a name: each asks for itself, and an answer goes on behind the right one."""
    model = ScriptedModel([call("refund")], [call("pay")], "Done.")
    agent = Agent(model, tools=[tool("pay"), tool("refund")], features=[approve("pay"), approve("refund")])
    first = await turn(agent)
    assert open_question(first).text == "Run refund?"
    second = await answered(agent, first, approved=True)
    assert open_question(second).text == "Run pay?"
    done = await answered(agent, second, approved=True)
    assert (done.status, texts(model.requests[2])) == ("answered", ["refund", "pay"])
    checked(agent, first, second, done)


async def test_two_rules_may_ask_about_one_call() -> None:
    """The second asks behind the first; neither is asked twice."""
    model = ScriptedModel([call("pay")], "Done.")
    agent = Agent(model, tools=[tool("pay")], features=[approve("pay"), approve("pay")])
    first = await turn(agent)
    second = await answered(agent, first, approved=True)
    assert open_question(second).key != open_question(first).key
    done = await answered(agent, second, approved=True)
    assert done.status == "answered"
    checked(agent, first, second, done)


async def test_a_handler_returns_a_question_and_its_answer_is_the_result() -> None:
    """The handler is not run again; rules after a tool see the value that the person gave."""
    fields = (AskField(name="size", schema={"type": "string"}),)
    form = tool("form", lambda *_: Ask("Which size?", fields=fields, detail={"room": 7}))
    model = ScriptedModel([call("form")], "Noted.")
    agent = Agent(model, tools=[form])
    paused = await turn(agent)
    question = open_question(paused)
    assert (question.by, question.audience, question.fields, question.detail) == (
        "form",
        "speaker",
        fields,
        {"room": 7},
    )
    done = await answered(agent, paused, value={"size": "XL"})
    assert (done.text, texts(model.requests[1])) == ("Noted.", ['{"size":"XL"}'])
    checked(agent, paused, done)


async def test_a_handler_asks_in_its_middle_and_runs_again() -> None:
    """`ctx.ask` leaves the handler; run again from its top it gets the answer in the same place."""
    model = ScriptedModel([call("order")], "Ordered.")
    agent = Agent(model, tools=[tool("order", asks())])
    paused = await turn(agent)
    assert open_question(paused).by == "order"
    done = await answered(agent, paused, value="XL")
    assert texts(model.requests[1]) == ["XL"]
    assert kinds(done)[:3] == ["turn.resumed", "tool.started", "tool.returned"]
    checked(agent, paused, done)


async def test_a_handler_may_ask_again() -> None:
    """The second question of one call gets a key of its own, and the first answer is still there."""
    model = ScriptedModel([call("order")], "Ordered.")
    agent = Agent(model, tools=[tool("order", sizes)])
    first = await turn(agent)
    second = await answered(agent, first, value="XL")
    assert open_question(second).text == "Which colour for XL?"
    done = await answered(agent, second, value="red")
    assert texts(model.requests[1]) == ["XL, red"]
    checked(agent, first, second, done)


async def in_a_group(args: Mapping[str, Json], ctx: ToolContext[Any]) -> object:
    """Asks from a task of its own."""
    async with asyncio.TaskGroup() as group:
        asked = group.create_task(ctx.ask(Ask("Which size?")))
        group.create_task(asyncio.sleep(0))
    return asked.result().value


async def under_a_broad_except(args: Mapping[str, Json], ctx: ToolContext[Any]) -> object:
    """Swallows whatever comes."""
    try:
        return (await ctx.ask(Ask("Which size?"))).value
    except BaseException:  # noqa: BLE001 - the point of this handler
        return "nobody answered"


async def asking_on(args: Mapping[str, Json], ctx: ToolContext[Any]) -> object:
    """Swallows the first question and asks another."""
    try:
        return (await ctx.ask(Ask("Which size?"))).value
    except BaseException:  # noqa: BLE001 - the point of this handler
        return (await ctx.ask(Ask("Which colour?"))).value


async def failing(args: Mapping[str, Json], ctx: ToolContext[Any]) -> object:
    """Turns the unwinding into an error of its own."""
    try:
        return (await ctx.ask(Ask("Which size?"))).value
    except BaseException as error:
        raise RuntimeError("broken") from error


@pytest.mark.parametrize("handler", [in_a_group, under_a_broad_except, asking_on, failing])
async def test_a_question_is_asked_however_the_handler_ends(handler: Any) -> None:
    """A task group, a broad except or another error inside the handler hides no question; the first one stands."""
    model = ScriptedModel([call("order")], "Ordered.")
    agent = Agent(model, tools=[tool("order", handler)])
    paused = await turn(agent)
    assert open_question(paused).text == "Which size?"
    done = await answered(agent, paused, value="XL")
    assert texts(model.requests[1]) == ["XL"]
    checked(agent, paused, done)


async def test_a_coroutine_that_a_handler_returns_is_awaited() -> None:
    """A forgotten ``await`` behind ``return`` loses no question, in an async handler as in a plain one."""

    async def size(ctx: ToolContext[Any]) -> object:
        return (await ctx.ask(Ask("Which size?"))).value

    async def forgetting(args: Mapping[str, Json], ctx: ToolContext[Any]) -> object:
        return size(ctx)

    for handler in (forgetting, lambda _, ctx: size(ctx)):
        model = ScriptedModel([call("order")], "Ordered.")
        agent = Agent(model, tools=[tool("order", handler)])
        await answered(agent, await turn(agent), value="XL")
        assert texts(model.requests[1]) == ["XL"]


async def test_what_a_handler_patched_before_it_asked_is_not_kept() -> None:
    """It runs again from its top, so its data counts once."""

    async def order(args: Mapping[str, Json], ctx: ToolContext[Any]) -> object:
        ctx.set({"asked": True})
        answer = await ctx.ask(Ask("Which size?"))
        ctx.set({"size": answer.value})
        return "ok"

    agent = Agent(ScriptedModel([call("order")], "Ordered."), tools=[tool("order", order)])
    paused = await turn(agent)
    assert paused.session is not None
    assert paused.session.data == {}
    done = await answered(agent, paused, value="XL")
    assert done.session is not None
    assert done.session.data == {"asked": True, "size": "XL"}


async def fill(turn: Turn, held: Round) -> Round | Ask:
    """Asks for the city that a call leaves out."""
    if turn.resumed is not None:
        city = turn.resumed.value
        calls = tuple(
            ToolCall(id=c.id, wire_id=c.wire_id, name=c.name, raw_args=c.raw_args, args={**c.args, "city": city})
            for c in held.calls
        )
        return Round(id=held.id, content=held.content, calls=calls, use=held.use)
    missing = any(c.name == "trip" and "city" not in c.args for c in held.calls)
    return Ask("Which city?") if missing else held


def travelling(model: ScriptedModel, ran: list[str], *features: Any) -> Agent[Any, str]:
    """An agent with a batch question before its tools run."""

    def noted(name: str) -> Tool:
        def handler(args: Mapping[str, Json], ctx: ToolContext[Any]) -> object:
            ran.append(name)
            return args.get("city", "nowhere")

        return tool(name, handler)

    return Agent(
        model,
        tools=[noted("trip"), noted("pay")],
        features=[Named("cities", Hooks(on_reply=fill)), *features],
    )


async def test_a_reply_hook_asks_about_the_whole_batch() -> None:
    """Nothing is dispatched; answered, the hook is called again and then every call runs."""
    ran: list[str] = []
    model = ScriptedModel([call("trip"), call("pay")], "Booked.")
    agent = travelling(model, ran)
    paused = await turn(agent)
    question = open_question(paused)
    assert (question.text, question.by, question.call) == ("Which city?", "cities", None)
    assert (ran, statuses(paused.session)) == ([], ["asked", "asked"])
    assert verdicts(paused) == [("reply", "cities", "ask", "")]
    done = await answered(agent, paused, value="Lund")
    assert (ran, texts(model.requests[1])) == (["trip", "pay"], ["Lund", "Lund"])
    checked(agent, paused, done)


async def test_after_a_batch_question_the_batch_may_ask_again() -> None:
    """An approval inside the batch comes after the question about all of it, and calls that ran do not run again."""
    ran: list[str] = []
    model = ScriptedModel([call("trip"), call("pay")], "Booked.")
    agent = travelling(model, ran, approve("pay"))
    first = await turn(agent)
    second = await answered(agent, first, value="Lund")
    assert (open_question(second).text, ran) == ("Run pay?", ["trip"])
    done = await answered(agent, second, approved=True)
    assert (done.status, ran) == ("answered", ["trip", "pay"])
    checked(agent, first, second, done)


async def test_an_answer_is_handed_to_its_asker_once() -> None:
    """A reply hook called in a later round does not take the old answer for its new question."""
    ran: list[str] = []
    model = ScriptedModel([call("trip")], [call("trip")], "Booked.")
    agent = travelling(model, ran)
    first = await turn(agent)
    second = await answered(agent, first, value="Lund")
    assert (open_question(second).text, ran) == ("Which city?", ["trip"])
    assert open_question(second).key.endswith("/q1")
    done = await answered(agent, second, value="Oslo")
    assert texts(model.requests[2]) == ["Lund", "Oslo"]
    checked(agent, first, second, done)


async def test_what_is_private_is_never_recorded() -> None:
    """A consent address reaches the caller alone: it is in no entry, no session and no question."""
    secret = "https://consent.example/canary-51"
    agent = Agent(ScriptedModel([call("order")]), tools=[tool("order", asks(private={"url": secret}))])
    paused = await turn(agent)
    assert paused.private == {"url": secret}
    assert secret not in repr((paused.entries, paused.session, open_question(paused)))
    assert secret.encode() not in b"".join(agent.plan.codec.lines(paused.entries))
