"""What a handler may return, and what becomes of it (seeds 000 and 001)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.conversation.content import File, Image, Text
from onrecord.record.kinds import DataPatched, Noted
from onrecord.testing import ScriptedModel, call
from onrecord.tools.tool import ToolContext, ToolResult
from tests.turn.acting import asked_once, bodies, calls_of, kinds, results, tool, turn

pytestmark = pytest.mark.unit


@dataclass
class Stay:
    city: str
    nights: int = 1


class Word(Enum):
    GOOD = "good"


class Unknowable:
    """JSON has no idea what this is."""


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("as it is", "as it is"),
        ("", ""),
        ('{"already": "json"}', '{"already": "json"}'),
        (None, '{"ok":true}'),
        (ToolResult(), '{"ok":true}'),
        (ToolResult(None), "null"),
        (ToolResult(data={"a": 1}), '{"ok":true}'),
        ({"total": 1500, "city": "São Paulo"}, '{"total":1500,"city":"São Paulo"}'),
        (ToolResult({"total": 1500}), '{"total":1500}'),
        ([], "[]"),
        ([1, "two", None], '[1,"two",null]'),
        (True, "true"),
        (0, "0"),
        (1.5, "1.5"),
        (2**70, "1180591620717411303424"),
        (Stay("Lund"), '{"city":"Lund","nights":1}'),
        (Word.GOOD, '"good"'),
        (datetime(2026, 9, 20, 12, tzinfo=UTC), '"2026-09-20T12:00:00Z"'),
        (Unknowable(), "[result could not be serialized]"),
        ({"deep": [Unknowable()]}, "[result could not be serialized]"),
    ],
)
async def test_m10_a_value_becomes_text(value: Any, expected: str) -> None:
    """Text as it is, no value ``{"ok":true}``, else compact JSON, and a fixed sentence for what JSON cannot hold."""
    result, heard = await asked_once(tool("lookup", lambda *_: value), calls=[call("lookup")])
    assert heard == [expected]
    assert results(result) == [("lookup", "returned")]


async def test_m10_a_long_value_is_cut_and_says_so() -> None:
    """Exactly at the limit nothing is cut."""
    held = tool("lookup", lambda args, _: "x" * args["n"], max_result_size_chars=10)
    _, heard = await asked_once(held, calls=[call("lookup", n=30), call("lookup", n=10), call("lookup", n=11)])
    assert heard == [
        "xxxxxxxxxx\n[truncated: 30 chars total, showing the first 10]",
        "xxxxxxxxxx",
        "xxxxxxxxxx\n[truncated: 11 chars total, showing the first 10]",
    ]


async def test_the_limit_counts_the_text_that_the_model_would_read() -> None:
    """JSON is cut like any text; characters are counted, not bytes."""
    held = tool("lookup", lambda args, _: args["v"], max_result_size_chars=5)
    _, heard = await asked_once(held, calls=[call("lookup", v={"a": 1}), call("lookup", v="ééééé")])
    assert heard == ['{"a":\n[truncated: 7 chars total, showing the first 5]', "ééééé"]


async def test_a_handlers_error_is_held_to_the_limit_too() -> None:
    """A stack of text in an exception does not fill the context."""

    def broken(args: object, ctx: object) -> None:
        raise ValueError("y" * 100)

    _, heard = await asked_once(tool("lookup", broken, max_result_size_chars=20), calls=[call("lookup")])
    assert heard == ['{"error":"yyyyyyyyyy\n[truncated: 112 chars total, showing the first 20]']


async def test_parts_are_results_as_they_are() -> None:
    """A picture or a file reaches the model as itself, alone or in a list, beside text."""
    image = Image(url="https://example.org/a.png", description="a chart")
    paper = File(data=b"%PDF", media="application/pdf", name="a.pdf")
    one, both = tool("one", lambda *_: image), tool("both", lambda *_: [Text("see"), paper])
    result, _ = await asked_once(one, both, calls=[call("one"), call("both")])
    assert [c.result for c in calls_of(result)] == [(image,), (Text("see"), paper)]


async def test_the_limit_cuts_only_the_text_among_parts() -> None:
    """Half a picture is no picture."""
    image = Image(data=b"0123456789")
    held = tool("one", lambda *_: (Text("abcdef"), image), max_result_size_chars=3)
    result, _ = await asked_once(held, calls=[call("one")])
    assert calls_of(result)[0].result == (Text("abc\n[truncated: 6 chars total, showing the first 3]"), image)


async def test_a_list_of_other_things_is_json() -> None:
    """Only a list of nothing but parts is taken as parts."""
    _, heard = await asked_once(tool("one", lambda *_: [Text("a"), 1]), calls=[call("one")])
    assert heard == ['[{"type":"text","text":"a"},1]']


async def test_sync_and_async_handlers_are_the_same_to_the_model() -> None:
    """A sync one runs in a thread, so that other turns go on; an awaitable that it returns is awaited."""
    import threading

    loop_thread, seen = threading.get_ident(), []

    async def later() -> str:
        return "awaited"

    async def async_one(args: object, ctx: object) -> str:
        return "async"

    def sync_one(args: object, ctx: object) -> str:
        seen.append(threading.get_ident())
        return "sync"

    held: list[tuple[str, Callable[..., Any]]] = [("a", async_one), ("s", sync_one), ("l", lambda *_: later())]
    _, heard = await asked_once(*(tool(id, h) for id, h in held), calls=[call("a"), call("s"), call("l")])
    assert heard == ["async", "sync", "awaited"]
    assert seen != [loop_thread]


@pytest.mark.parametrize("status", ["partial", "absent", "failed", "invalid"])
async def test_a_result_may_say_how_it_went(status: Any) -> None:
    """The status is on the record and in the conversation; the model reads the value."""
    held = tool("lookup", lambda *_: ToolResult("half of it", status=status))
    result, heard = await asked_once(held, calls=[call("lookup")])
    assert heard == ["half of it"]
    assert results(result) == [("lookup", status)]
    assert [c.status for c in calls_of(result)] == [status]


async def test_facts_are_filed_before_the_result() -> None:
    """What a handler knows beside its value is on the record, caused by its call, even when the value is cut."""
    held = tool("lookup", lambda *_: ToolResult("long" * 9, facts=(Noted(by="lookup", text="3 of 4 read"),)),
                max_result_size_chars=4)  # fmt: skip
    result, _ = await asked_once(held, calls=[call("lookup")])
    started = next(e for e in result.entries if e.body.__struct_config__.tag == "tool.started")
    noted = next(e for e in result.entries if isinstance(e.body, Noted))
    assert noted.cause == started.n
    assert kinds(result).index("note") < kinds(result).index("tool.returned")


async def test_data_is_merged_into_the_session_as_given() -> None:
    """No coercion and no check, at the top level, when the reply is through (seed 001)."""
    held = tool("book", lambda *_: ToolResult("ok", data={"booking": "RES-1", "n": "5", "nested": {"a": 1}}))
    result = await turn(Agent(ScriptedModel(call("book"), "done"), tools=[held]))
    assert result.session is not None
    assert result.session.data == {"booking": "RES-1", "n": "5", "nested": {"a": 1}}
    assert [b.patch for b in bodies(result, DataPatched)] == [result.session.data]
    assert kinds(result).index("data.patched") > kinds(result).index("said")


async def test_set_and_data_make_one_patch() -> None:
    """``ctx.set`` grows the patch of the call, what the result says is laid over it."""

    def handler(args: object, ctx: ToolContext[object]) -> ToolResult:
        ctx.set({"a": 1, "b": 1})
        ctx.set({"b": 2})
        return ToolResult("ok", data={"c": 3, "a": 9})

    result = await turn(Agent(ScriptedModel(call("book"), "done"), tools=[tool("book", handler)]))
    assert result.session is not None
    assert result.session.data == {"a": 9, "b": 2, "c": 3}


async def test_a_turn_without_tool_data_files_no_patch() -> None:
    """Nothing to merge is nothing on the record."""
    result, _ = await asked_once(tool(), calls=[call("lookup")])
    assert bodies(result, DataPatched) == []


async def test_data_of_a_turn_whose_model_fails_is_not_kept() -> None:
    """The patch lands when speaking is through; a model that fails before leaves the session as it was."""
    from onrecord.errors import ModelError
    from onrecord.testing import raises

    held = tool("book", lambda *_: ToolResult("ok", data={"booking": 1}))
    agent: Agent[Any, Any] = Agent(ScriptedModel("hello", call("book"), raises("network")), tools=[held])
    first = await turn(agent)
    with pytest.raises(ModelError):
        await turn(agent, session=first.session)
    assert first.session is not None
    assert first.session.data == {}
