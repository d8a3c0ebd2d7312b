"""The one who speaks: tools, instructions, failures and what is streamed: 21, 23, 24 and 26.4, over whole turns."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from onrecord.conversation.inputs import Said, Started
from onrecord.flows import (
    Branch,
    Collect,
    Do,
    Field,
    Flow,
    FlowInstruction,
    Idle,
    OnMention,
    OnMessage,
    Say,
    Talk,
    Wait,
)
from onrecord.flows.predicates import PredContext
from onrecord.jsonio import dumps
from onrecord.testing import call, raises, reply
from onrecord.tools.tool import Tool, ToolResult
from tests.flows.playing import NOTHING, Play, after, ends, keys, line, lines, said_by, says, starts, told, wakes

pytestmark = pytest.mark.unit

RIGHT = [says("Right?")]
A, B, C = (Tool(id, lambda *_: 1) for id in ("a", "b", "c"))


async def vip(ctx: PredContext) -> bool:
    """A condition that somebody else is asked about."""
    return bool(ctx.context)


# ---- tools -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("of_flow", "of_step", "offered"),
    [
        (None, None, ["a", "b", "c"]), (["b"], None, ["b"]), (["b"], ["c", "a"], ["a", "c"]), (None, [], []),
        ([], None, []), ([], ["b"], ["b"]),
    ],
)  # fmt: skip
async def test_tools_are_the_step_s_else_the_flow_s_else_all(of_flow: Any, of_step: Any, offered: list[str]) -> None:
    """In the agent's order; an empty list is none, and then nothing is said of tools."""
    play = Play(Flow("f", tools=of_flow, steps=[Talk("Hi.", id="t", tools=of_step)]), tools=[A, B, C])
    await play.started("f", speak=RIGHT)
    assert [offer.tool.id for offer in play.requests[0].offers] == offered
    assert ("## Tools" in told(play.requests[0])) is bool(offered)


@pytest.mark.parametrize(("of_idle", "offered"), [(None, ["a", "b", "c"]), (["b"], ["b"]), ([], [])])
async def test_tools_of_the_idle_speaker_are_its_own_else_all(of_idle: Any, offered: list[str]) -> None:
    """No flow narrows them."""
    play = Play(Flow("f", tools=["c"], steps=[Talk("Hi.", id="t")]), idle=Idle("Help.", tools=of_idle), tools=[A, B, C])
    await play.said(speak=RIGHT)
    assert [offer.tool.id for offer in play.requests[0].offers] == offered


async def test_a_tool_knows_its_run_and_what_it_is_for() -> None:
    """The idle speaker has none."""
    seen: list[Any] = []
    look = Tool("look", lambda _, ctx: seen.append((getattr(ctx.run, "id", None), ctx.input, ctx.dedupe_key)))
    play = Play(Flow("f", steps=[Talk("Hi.", id="t")]), tools=[look])
    await play.started("f", input={"x": 7}, speak=[[call("look")], says("Hi")])
    await play.said(speak=[[call("look")], says("Hi")])
    assert seen == [("f#k", {"x": 7}, "f:s1:k"), (None, None, "")]


async def test_what_the_idle_speaker_s_tools_write_is_kept() -> None:
    """It has no fields of its own to read."""
    writes = Tool("w", lambda *_: ToolResult(1, data={"name": "Ana"}))
    play = Play(tools=[writes])
    await play.said(speak=[[call("w")], says("Hi", company="Zeta")])
    assert play.data == {"name": "Ana"}


async def test_a_step_whose_last_field_a_tool_wrote_goes_on() -> None:
    """In the same turn."""
    writes = Tool("w", lambda *_: ToolResult(1, data={"ok": True}))
    play = Play(Flow("f", steps=[Collect("ok", id="q"), Do("notify", id="n")]), tools=[writes])
    result = await play.started("f", speak=[[call("w")], says("Hi")])
    assert (ends(result), len(play.notified)) == ([("f#k", "end")], 1)


async def test_of_an_answer_that_failed_only_what_its_tools_did_is_kept() -> None:
    """They ran, and the conversation says so; what its first round heard is asked for again."""
    writes = Tool("w", lambda *_: ToolResult(1, data={"company": "Zeta"}))
    play = Play(Flow("f", steps=[Collect("name", "company", id="q")]), tools=[writes])
    first = reply(dumps({"message": "Let me see.", "name": "Ana"}).decode(), call("w"))
    result = await play.started("f", speak=[first, raises("network")])
    assert (play.data, result.messages, line(result, "provider-unavailable").until) == (
        {"company": "Zeta"}, (), after(minutes=1),
    )  # fmt: skip


# ---- instructions ----------------------------------------------------------------------------------------------------


async def test_instructions_stand_from_the_agent_to_the_step() -> None:
    """Those whose condition does not hold are left out, also where it is async; each sees the run."""

    def of_run(ctx: PredContext) -> bool:
        return ctx.run is not None and ctx.run.flow_id == "f" and ctx.input == {"x": 7}

    of_step = [FlowInstruction("Step", only_if=vip), FlowInstruction("Never", only_if={"known": ["name"]})]
    flow = Flow(
        "f", instructions=[FlowInstruction("Flow {{input.x}}", kind="must", only_if=of_run)],
        steps=[Talk("Hi.", id="t", instructions=of_step)],
    )  # fmt: skip
    play = Play(
        flow, instructions=[FlowInstruction("Agent", kind="never", when=["a", "!b"])],
        idle=Idle("Help.", instructions=[FlowInstruction("Idle", only_if=lambda ctx: ctx.run is None)]),
    )  # fmt: skip
    await play.started("f", input={"x": 7}, context=True, speak=RIGHT)
    section = told(play.requests[0]).split("## Instructions\n")[1].split("\n\n")[0]
    assert section.splitlines() == [
        "- [never] [Always] Agent (apply only when: a; never when: b)", "- [must] [Always] Flow 7",
        "- [should] [Always] Step",
    ]  # fmt: skip
    await play.said(context=False, speak=RIGHT)
    section = told(play.requests[0]).split("## Instructions\n")[1].split("\n\n")[0]
    assert section.splitlines() == [
        "- [never] [Always] Agent (apply only when: a; never when: b)", "- [should] [Always] Idle"
    ]  # fmt: skip


async def test_the_understand_call_sees_no_instructions() -> None:
    """They are for whoever speaks."""
    play = Play(Flow("f", on=[OnMessage()], steps=[Say("x", id="s"), Collect("name", id="q")]),
                instructions=[FlowInstruction("Be brief.")])  # fmt: skip
    await play.said(judge=NOTHING, speak=RIGHT)
    assert "Be brief." not in told(play.requests[0])
    assert "Be brief." in told(play.requests[1])


# ---- what is told ----------------------------------------------------------------------------------------------------


async def test_a_step_s_wording_of_a_field_wins_and_a_blank_one_does_not() -> None:
    """Rendered with the run's input."""
    fields = {"name": Field(ask="Ask the name."), "ok": Field(type="boolean", ask="Ask if right.")}
    flow = Flow("f", steps=[Collect("name", "ok", id="q", ask={"name": "Ask {{input.who}}'s name.", "ok": " "})])
    play = Play(flow, fields=fields)
    await play.started("f", input={"who": "Bo"}, speak=RIGHT)
    prompt = told(play.requests[0])
    assert "  How to ask: Ask Bo's name." in prompt
    assert "Ask the name." not in prompt


async def test_a_retry_with_nobody_waiting_speaks_first() -> None:
    """The last thing in the conversation is the assistant's, or nothing."""
    play = Play(Flow("f", steps=[Talk("Hi.", id="t")]))
    ((wake, play.clock.at),) = wakes(await play.started("f", speak=[raises("network")]))
    await play.woke(wake, speak=RIGHT)
    assert "You speak first" in told(play.requests[0])


async def test_a_retry_answers_the_message_that_waits() -> None:
    """It is the last thing in the conversation."""
    play = Play(Flow("f", on=[OnMessage()], steps=[Talk("Hi.", id="t")]))
    ((wake, play.clock.at),) = wakes(await play.said("how much?", speak=[raises("network")]))
    await play.woke(wake, speak=RIGHT)
    prompt = told(play.requests[0])
    assert "has no answer yet" in prompt
    assert "You speak first" not in prompt


async def test_a_follow_up_is_no_retry_whoever_wrote_last() -> None:
    """It was not answered, but nothing failed: the assistant speaks first."""
    flow = Flow("f", steps=[Wait("1h", id="w"), Talk("Hi.", id="t")])
    play = Play(flow, idle="silent")
    ((wake, play.clock.at),) = wakes(await play.started("f"))
    await play.said()
    await play.woke(wake, speak=RIGHT)
    assert "You speak first" in told(play.requests[0])


async def test_what_went_out_before_is_told_in_its_order() -> None:
    """Texts with their media; also those of other runs, where they do not hold the answer back."""
    steps: list[Any] = [Say("A", id="a", media="logo"), Say("B", id="b"), Talk("Hi.", id="t")]
    play = Play(Flow("f", steps=steps))
    await play.started("f", speak=RIGHT)
    section = told(play.requests[0]).split("## Already sent\n")[1].split("\n\n")[0]
    assert section.splitlines()[-2:] == ['- "A" [media: logo]', '- "B"']


# ---- failures --------------------------------------------------------------------------------------------------------


async def test_the_ladder_of_tries() -> None:
    """A minute, five, fifteen, an hour, six hours; the sixth failure in a row ends the run, and nothing is armed."""
    play = Play(Flow("f", steps=[Say("Hi", id="s"), Talk("Hi.", id="t")]))
    result = await play.started("f", speak=[raises("overload")])
    for minutes in (1, 5, 15, 60, 360):
        ((wake, at),) = wakes(result)
        assert at - play.clock.at == timedelta(minutes=minutes)
        assert wake == f"f#k:t:1:retry:{int(at.timestamp() * 1000)}"
        play.clock.at = at
        result = await play.woke(wake, speak=[raises("overload")])
    (failed,) = result.outcomes
    assert (failed.status, failed.code, failed.key, failed.until) == ("failed", "provider-unavailable", "f#k:t:1", None)
    assert (ends(result), wakes(result), len(play.notified)) == ([("f#k", "failed")], [], 0)


async def test_a_wait_that_the_provider_states_counts_when_it_is_later() -> None:
    """An earlier one does not."""
    flow = Flow("f", steps=[Talk("Hi.", id="t")])
    for seconds, minutes in ((600, 10), (5, 1)):
        result = await Play(flow).started("f", speak=[raises("rate", retry_after=seconds)])
        assert [at for _, at in wakes(result)] == [after(minutes=minutes)]


async def test_failures_of_one_step_are_not_those_of_the_next() -> None:
    """An exit leads on while an answer is owed: the next failure waits a minute again."""
    exits = [Branch(only_if=lambda ctx: ctx.context, then="b")]
    flow = Flow("f", on=[OnMessage()], steps=[Talk("A.", id="a", branches=exits), Talk("B.", id="b")])
    play = Play(flow)
    await play.said(key="m1", context=False, speak=[raises("network")])
    result = await play.said(key="m2", context=True, speak=[raises("network")])
    assert wakes(result) == [("f#m1:b:1:retry:1789898460000", after(minutes=1))]


async def test_what_a_run_that_failed_had_asked_is_asked_by_whoever_waited() -> None:
    """The floor goes back in the same turn."""
    play = Play(Flow("one", steps=[Collect("ok", id="q")]), Flow("two", steps=[Talk("Hi.", id="t")]))
    await play.started("one", key="k1", speak=RIGHT)
    result = await play.started("two", key="k2", speak=[raises("auth")])
    assert (ends(result), play.statuses) == ([("two#k2", "failed")], {"one": "asking"})


# ---- streams ---------------------------------------------------------------------------------------------------------


async def streamed(play: Play, input: Any, *, judge: Any = None, speak: Any = ()) -> tuple[list[str], Any]:
    """One streamed turn: its deltas and its result."""
    play.script(judge, speak)
    stream = play.agent.turn_stream(input, session=play.session or play.id, effects=play.clock)
    deltas = [delta async for delta in stream.text]
    result = await stream.result()
    play.session = result.session
    return deltas, result


async def test_messages_of_one_turn_stay_apart_in_a_stream() -> None:
    """A reader sees what the customer gets: the words of the result, line by line."""
    flow = Flow(
        "f", on=[OnMessage()], steps=[Say("A", id="a"), Say("B", id="b"), Collect("ok", id="q", question="Right?")]
    )
    play = Play(flow)
    deltas, result = await streamed(play, Said("hi", key="m1"), speak=[says("It is 420.")])
    assert [m.text for m in result.messages] == ["A", "B", "It is 420.", "Right?"]
    assert "".join(deltas) == result.text == "A\n\nB\n\nIt is 420.\n\nRight?"


async def test_what_is_shown_before_an_answer_that_fails_is_what_was_sent() -> None:
    """The half of the answer is in no message."""
    play = Play(Flow("f", steps=[Say("A", id="a"), Talk("Hi.", id="t")]))
    broken = reply('{"message":"Half', raises("network"))
    deltas, result = await streamed(play, Started("f", key="k"), speak=[broken])
    assert "".join(deltas) == "A\n\nHalf"
    assert ([m.text for m in result.messages], lines(result)[-1][2:]) == (["A"], ("deferred", "provider-unavailable"))


async def test_a_stream_of_a_turn_in_which_nobody_speaks_is_its_result() -> None:
    """No delta at all."""
    play = Play(Flow("f", steps=[Do("notify", id="n")]))
    deltas, result = await streamed(play, Started("f", key="k"))
    assert (deltas, starts(result), result.messages) == ([], ["f#k"], ())


async def test_streamed_and_plain_turns_come_to_the_same() -> None:
    """With a mention, an exit, a line, tools, fields, a fixed question and a failure: keys, data, timers and lines."""
    flows = (
        Flow("note", on=[OnMention("a")], steps=[Say("Noted.", id="s")]),
        Flow("f", on=[OnMessage()], steps=[
            Collect("name", id="q", branches=[Branch("leaves", then="end")]), Collect("ok", id="r", question="Right?"),
            Wait("2s", id="w"), Talk("Thank them.", id="t"),
        ]),
    )  # fmt: skip
    turns: list[dict[str, Any]] = [
        {"judge": {"mentions": {"note": False}, "fields": {}, "asks": True}, "speak": [[call("a")], says("Who?")]},
        {"judge": {"mentions": {"note": True}, "fields": {"name": "Ana"}, "asks": False}},
        {"judge": {"asks": True}, "speak": [raises("network")]},
        {"judge": {"asks": True}, "speak": [says("It is 420.")]},
        {"judge": {"asks": False}, "speak": [says("Good.", ok=True)]},
        {"speak": [says("Thanks!")]},
    ]
    plain, live = Play(*flows, tools=[A]), Play(*flows, tools=[A])
    result: Any = None
    for number, turn in enumerate(turns):
        key = f"m{number}"
        judge = turn.get("judge")
        if number in (2, 3, 4):
            judge = None
        expected = await plain.said(key=key, judge=judge, speak=turn.get("speak", ()))
        deltas, result = await streamed(live, Said("hi", key=key), judge=judge, speak=turn.get("speak", ()))
        assert result == expected
        if result.status == "answered":
            assert "".join(deltas).endswith(result.text)
    assert (live.state, live.data) == (plain.state, plain.data)
    assert said_by(result)[-1][0] == "Thanks!"
    assert keys(result) == ["f#m0:t:1"]
