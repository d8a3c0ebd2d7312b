"""Cases D of the specification: what a collecting step asks for, takes, and lets go."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from onrecord.flows import Collect, Do, Flow, Goto, If, Ok, Say, Talk
from onrecord.jsonio import Json
from onrecord.testing import call, reply
from onrecord.tools.tool import Tool, ToolContext, ToolResult
from tests.flows.playing import NOTHING, Play, ends, keys, line, lines, said_by, says, sections

pytestmark = pytest.mark.unit


async def test_d1_out_of_order() -> None:
    """Values may come in any order: the step that asked is done, the next one has nothing to ask, the flow is over."""
    play = Play(Flow("intake", steps=[Collect("name", "company", id="who"), Collect("size", id="team")]))
    await play.started("intake", speak=[says("Who are you?")])
    found = {"fields": {"name": "Ana", "company": "Zeta", "size": "11-50"}}
    result = await play.said(judge=found, speak=[says("Thank you.")])
    assert lines(result) == [
        ("who", "collect", "ok", None), ("team", "collect", "skipped", "already-known"), (None, "idle", "ok", None)
    ]  # fmt: skip
    assert ends(result) == [("intake#k", "end")]
    assert keys(result) == ["idle:m1"]
    assert play.data == {"name": "Ana", "company": "Zeta", "size": "11-50"}


async def test_d3_max_asks() -> None:
    """After two asks without an answer the field is passed over, and the customer could still answer the second."""
    play = Play(Flow("f", steps=[Collect("name", id="who", max_asks=2), Say("Bye", id="bye")]))
    await play.started("f", speak=[says("Name?")])
    assert dict(play.run("f").asked) == {"name": 1}
    await play.said("hm", key="m1", judge=NOTHING, speak=[says("Please?")])
    assert (dict(play.run("f").asked), play.run("f").status) == ({"name": 2}, "asking")
    result = await play.said("hm", key="m2", judge=NOTHING)
    assert lines(result) == [
        ("who", "collect", "skipped", "max-asks"), ("who", "collect", "ok", None), ("bye", "say", "ok", None)
    ]  # fmt: skip
    assert line(result, "max-asks").detail == "name"
    assert [m.text for m in result.messages] == ["Bye"]
    assert "name" not in play.data


async def test_d4_asked_fields() -> None:
    """A field that only its own step may read costs no understand call: the speak call reads it."""
    play = Play(Flow("f", steps=[Collect("ok", id="q")]))
    await play.started("f", speak=[says("Right?")])
    result = await play.said("yes", speak=[says("Great", ok=True)])
    assert play.data == {"ok": True}
    assert result.llm_calls == 1


async def test_d5_stray_yes() -> None:
    """A yes to something else is no answer to a question that was not asked: the field is not offered."""
    play = Play(Flow("f", steps=[Collect("name", id="who"), Collect("ok", id="check")]))
    await play.started("f", speak=[says("Name?")])
    await play.said("yes", judge=NOTHING, speak=[says("And your name?")])
    assert sections(play.requests[0]) == {"fields": ["name"]}
    assert sections(play.requests[1]) == {"message": [], "name": []}


async def test_d6_dropped_values() -> None:
    """A value that does not fit leaves a line that belongs to no run, and nothing is written."""
    play = Play(Flow("f", steps=[Collect("budget", "size", id="q")]))
    await play.started("f", speak=[says("Budget and size?")])
    found = {"fields": {"budget": "lots", "size": "7", "ghost": "x"}}
    result = await play.said(judge=found, speak=[says("In numbers, please.")])
    dropped = result.outcomes[:3]
    assert [(each.kind, each.status, each.code, each.detail, dict(each.about)) for each in dropped] == [
        ("collect", "skipped", "bad-value", "budget", {}),
        ("collect", "skipped", "not-in-enum", "size", {}),
        ("collect", "skipped", "unknown-field", "ghost", {}),
    ]
    assert play.data == {}


async def test_d7_correction_loop() -> None:
    """A no sends the run back to the step that asked: what is cleared there is unknown and unasked again.

    That step waits for the next message, since this turn has spoken.
    """
    flow = Flow(
        "f",
        steps=[
            Collect("name", "company", id="who"),
            Collect("ok", id="check"),
            If({"equals": {"ok": True}}, id="gate", else_=Goto("who", clear=["ok", "company"])),
        ],
    )
    play = Play(flow, data={"name": "Ana", "company": "Zeta"})
    await play.started("f", speak=[says("Right?")])
    asking = play.run("f")
    assert (dict(asking.asked), dict(asking.visits)) == ({"ok": 1}, {"who": 1, "check": 1})
    result = await play.said("no", speak=[says("Noted wrong?", ok=False)])
    back = play.run("f")
    assert (play.data, dict(back.asked)) == ({"name": "Ana"}, {})
    assert (back.step_id, back.status, back.visits["who"]) == ("who", "asking", 2)
    assert said_by(result) == [("Noted wrong?", "ai", "f#k:check:1/2")]
    assert [each.next for each in result.outcomes] == [None, "who"]


async def test_d8_speak_extraction_wins_late() -> None:
    """Over the rounds of one reply a later value wins, and a later null takes nothing back."""
    price = Tool("price", lambda *_: 420)
    play = Play(Flow("f", steps=[Collect("name", "size", id="q")]), tools=[price])
    first = says("One moment.", name="Jo", size="1-10")
    await play.started("f", speak=[reply(*first.chunks, call("price")), says("Done.", name=None, size="11-50")])
    assert play.data == {"name": "Jo", "size": "11-50"}


async def test_d8_calls_inside_the_envelope() -> None:
    """Tool calls that the model writes into its envelope are calls like any other."""
    price = Tool("price", lambda *_: 420)
    play = Play(Flow("f", steps=[Collect("name", "size", id="q")]), tools=[price])
    first = says("One moment.", name="Jo", size="1-10", toolCalls=[{"toolName": "price", "arguments": {}}])
    result = await play.started("f", speak=[first, says("Done.", name=None, size="11-50")])
    assert play.data == {"name": "Jo", "size": "11-50"}
    assert said_by(result) == [("Done.", "ai", "f#k:q:1")]


async def test_d9_tool_data() -> None:
    """What a tool writes lands as it is, without a line, and the step that waited for it is done."""
    quote = Tool("quote", lambda *_: ToolResult("ok", data={"budget": "free text"}))
    play = Play(Flow("f", steps=[Collect("budget", id="q")]), tools=[quote])
    result = await play.started("f", speak=[call("quote"), says("Noted.")])
    assert play.data == {"budget": "free text"}
    assert lines(result) == [("q", "collect", "ok", None)]
    assert ends(result) == [("f#k", "end")]


async def test_d11_flow_level_collect() -> None:
    """A flow that holds the floor takes what it lists, also what none of its steps asks for."""
    play = Play(Flow("f", collect=["name", "budget"], steps=[Collect("name", id="who")]))
    await play.started("f", speak=[says("Name?")])
    await play.said(judge={"fields": {"budget": 5000}}, speak=[says("And your name?")])
    assert sections(play.requests[0]) == {"fields": ["name", "budget"]}
    assert play.data == {"budget": 5000}


async def test_d12_action_writes() -> None:
    """An action that writes nothing into a field makes it unknown: the next step asks for it again."""

    def forget(args: Mapping[str, Json], ctx: ToolContext[Any]) -> Ok:
        ctx.set({"name": None})
        return Ok()

    flow = Flow("f", steps=[Do("forget", id="d"), Collect("name", id="who"), Talk("Go on.", id="go")])
    play = Play(flow, actions=[Tool("forget", forget)], data={"name": "Ana"})
    result = await play.started("f", speak=[says("Name?")])
    assert lines(result) == [("d", "do", "ok", None), ("who", "collect", "ok", None)]
    assert (play.run("f").step_id, dict(play.run("f").asked), play.data) == ("who", {"name": 1}, {})
