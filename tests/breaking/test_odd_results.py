"""Handlers that return, set, ask and change what they should not: the turn goes on, and its session can be read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, cast

import pytest

from onrecord.agent import Agent
from onrecord.conversation.content import Text
from onrecord.conversation.inputs import Ask
from onrecord.errors import UsageError
from onrecord.record.kinds import ModelReplied, ToolStarted
from onrecord.testing import ScriptedModel
from onrecord.tools.tool import ToolResult
from tests.breaking.keeping import kept
from tests.turn.acting import Result, bodies, call, results, rounds_of, texts, tool, turn

pytestmark = pytest.mark.unit

ANY: Any = None
CIRCLE: list[Any] = []
CIRCLE.append(CIRCLE)


async def ran(handler: Callable[..., Any], **args: Any) -> tuple[Result, str]:
    """A turn with one call of this handler, stored and loaded again; and what the model read."""
    model = ScriptedModel([call("lookup", **args)], "done")
    result = await turn(Agent(model, tools=[tool(handler=handler)]))
    await kept(result)
    return result, texts(model.requests[1])[0] if len(model.requests) > 1 else ""


@pytest.mark.parametrize(
    "make",
    [
        lambda: ToolResult("x", data={"o": object()}),
        lambda: ToolResult("x", data={"o": CIRCLE}),
        lambda: ToolResult("x", data={"o": "\ud83d"}),
        lambda: ToolResult("x", data={cast(str, 1): 2}),
        lambda: ToolResult("x", data=cast(Any, [1])),
        lambda: ToolResult("x", status=cast(Any, "asked")),
        lambda: ToolResult("x", status=cast(Any, "weird")),
        lambda: ToolResult("x", facts=cast(Any, (object(),))),
        lambda: ToolResult("x", facts=ANY),
        lambda: Text(ANY),
        lambda: [Text("a"), Text(cast(str, 5))],
        lambda: Ask(cast(str, object())),
        lambda: Ask("?", fields=cast(Any, ("a",))),
        lambda: Ask("?", detail=object()),
        lambda: Ask("half \ud83d"),
    ],
    ids=range(15),
)
async def test_a_result_that_could_not_be_read_again_is_a_failed_call(make: Callable[[], object]) -> None:
    """Stored, it would lock its session for ever."""
    result, read = await ran(lambda *_: make())
    assert (results(result), read[:10]) == ([("lookup", "failed")], '{"error":"')
    assert result.session is not None
    assert result.session.data == {}


@pytest.mark.parametrize(
    "patch", [{"o": object()}, {"o": CIRCLE}, {"o": "\ud83d"}, {1: 2}, None], ids=["object", "circle", "half", "1", "-"]
)
async def test_data_that_could_not_be_read_again_is_a_failed_call(patch: Any) -> None:
    """Data set beside a result; none of it lands."""

    def sets(args: Mapping[str, Any], ctx: Any) -> str:
        ctx.set({"fine": 1})
        ctx.set(patch)
        return "ok"

    result, _ = await ran(sets)
    assert results(result) == [("lookup", "failed")]


async def test_texts_with_half_a_surrogate_pair_are_made_readable() -> None:
    """In parts too."""
    assert (await ran(lambda *_: Text("a \ud83d b")))[1] == "a � b"
    assert (await ran(lambda *_: "a \ud83d b"))[1] == "a � b"


async def test_what_a_handler_does_to_its_arguments_is_not_done_to_the_record() -> None:
    """The record shows what the model asked for and what ran, not what the handler left of it."""

    def ruins(args: dict[str, Any], ctx: Any) -> str:
        args["where"]["city"] = args["tags"].append(object())
        args.clear()
        args["evil"] = object()
        return "ok"

    given = {"where": {"city": "Lund"}, "tags": ["a"]}
    result, _ = await ran(ruins, **given)
    (replied, _), (started,) = bodies(result, ModelReplied), bodies(result, ToolStarted)
    assert replied.round.calls[0].args == started.args == rounds_of(result)[0].calls[0].args == given


async def test_a_gate_that_changes_arguments_changes_what_runs_and_not_what_was_said() -> None:
    """What runs is on the record of the call; the reply stays what the model said."""

    def gate(args: dict[str, Any], ctx: Any) -> Any:
        args["city"] = "Malmö"
        raise ValueError("no")

    model = ScriptedModel([call("lookup", city="Lund")], "done")
    result = await turn(Agent(model, tools=[tool(validate_input=gate)]))
    assert bodies(result, ModelReplied)[0].round.calls[0].args == {"city": "Lund"}


@pytest.mark.parametrize(
    "make",
    [lambda: None, lambda: "?", lambda: 5, lambda: Ask(cast(str, object())), lambda: Ask("?", detail=CIRCLE)],
    ids=range(5),
)
async def test_asking_what_is_no_question_is_a_failed_call(make: Callable[[], Any]) -> None:
    """`ctx.ask` says so in the handler."""

    async def asks(args: Mapping[str, Any], ctx: Any) -> None:
        await ctx.ask(make())

    result, _ = await ran(asks)
    assert results(result) == [("lookup", "failed")]


@pytest.mark.parametrize("way", ["swallow", "finally", "gather", "group"])
async def test_a_question_is_asked_whatever_becomes_of_the_unwinding(way: str) -> None:
    """A broad except, a finally that raises, and tasks of the handler's own."""

    async def asks(args: Mapping[str, Any], ctx: Any) -> Any:
        if way == "gather":
            await asyncio.gather(ctx.ask(Ask("a")), ctx.ask(Ask("b")))
        elif way == "group":
            async with asyncio.TaskGroup() as group:
                group.create_task(ctx.ask(Ask("a")))
                group.create_task(ctx.ask(Ask("b")))
        try:
            await ctx.ask(Ask("a"))
        except BaseException:
            if way == "swallow":
                return "swallowed"
            raise
        finally:
            if way == "finally":
                raise ValueError("last words")

    result, _ = await ran(asks)
    assert (result.status, result.question and result.question.text) == ("paused", "a")


async def test_a_context_that_outlives_its_call_says_so() -> None:
    """What it is told later would be lost, or end a task that has nothing to do with the call."""
    kept: list[Any] = []
    await ran(lambda _, ctx: kept.append(ctx))
    with pytest.raises(UsageError, match="has ended"):
        await kept[0].ask(Ask("late"))
    with pytest.raises(UsageError, match="has ended"):
        kept[0].set({"late": 1})


async def test_thousands_of_calls_in_one_reply_are_all_settled_in_order() -> None:
    """Equal ones too: each has a key of its own."""
    keys: list[str] = []
    handler = tool(handler=lambda _, ctx: keys.append(ctx.key))
    result = await turn(Agent(ScriptedModel([call("lookup")] * 2000, "done"), tools=[handler]))
    assert results(result) == [("lookup", "returned")] * 2000
    assert len(set(keys)) == 2000
