"""What whoever speaks is told in a whole turn, and what becomes of words that a rule refuses: 21.2 and 23."""

from __future__ import annotations

from typing import Any

import pytest

from onrecord.flows import Collect, Field, Flow, FlowInstruction, Idle, OnMention, OnMessage, Say, Talk, Wait
from onrecord.governance.rules import on_output
from onrecord.testing import call, raises, shown
from onrecord.tools.tool import Tool
from onrecord.turn.moments import ALLOW, Allow, Answer, Deny
from onrecord.turn.turn import Turn
from tests.flows.playing import Play, after, keys, line, lines, says, told, wakes

pytestmark = pytest.mark.unit

RIGHT = [says("Right?")]
PRICE = Tool("price", lambda *_: 1)


def headings(text: str) -> list[str]:
    """The sections of a prompt, in order."""
    return [each.removeprefix("## ").split(" (")[0] for each in text.splitlines() if each.startswith("## ")]


def section(text: str, name: str) -> list[str]:
    """The lines of a section."""
    return text.split(f"## {name}")[1].split("\n\n## ", maxsplit=1)[0].splitlines()[1:]


async def test_whoever_talks_is_told_everything_in_its_order() -> None:
    """Flow, guideline, fields to get with how to ask, what is known, rules, the message, what was sent, the form."""
    fields = {"full name": Field(ask="Ask {{context.how}}."), "ok": Field(type="boolean"), "size": Field()}
    flow = Flow(
        "f", name="Booking", description="Books {{context.what}}.", on=[OnMessage()],
        instructions=[FlowInstruction("Be kind to {{data.size}}.")],
        steps=[Say("A", id="s"), Collect("full name", "ok", id="q", prompt="Find out for {{data.size}}.")],
    )  # fmt: skip
    play = Play(flow, fields=fields, data={"size": "big"}, tools=[PRICE], persona="{{context.who}}", goal="sell")
    context = {"how": "nicely", "what": "rooms", "who": "A clerk"}
    await play.said("I want a room", judge={"fields": {}}, speak=RIGHT, context=context)
    prompt = told(play.requests[1])
    assert headings(prompt) == [
        "Identity", "Flow", "Guideline for your reply", "Still to collect", "Already known", "Instructions",
        "Customer's latest message", "Already sent", "Response format", "Tools",
    ]  # fmt: skip
    assert section(prompt, "Identity")[1:] == ["A clerk", "Your goal: sell"]
    assert section(prompt, "Flow") == ["Booking: Books rooms."]
    assert section(prompt, "Guideline") == ["Find out for big."]
    assert section(prompt, "Still to collect")[1:] == [
        "- full name (string)", "  How to ask: Ask nicely.", "- ok (boolean)"
    ]  # fmt: skip
    assert section(prompt, "Already known")[1:] == ['- size: "big"']
    assert section(prompt, "Instructions") == ["- [should] [Always] Be kind to big."]
    assert section(prompt, "Customer's latest message") == ['"I want a room"']
    assert any(each.startswith('- "field_1": full name (string)') for each in section(prompt, "Response format"))


async def test_the_idle_speaker_is_told_its_own() -> None:
    """No flow, nothing to collect, nothing known."""
    play = Play(idle=Idle("Help {{context.who}} with {{data.name}}."), data={"name": "Ana"}, tools=[PRICE])
    await play.said("hello", speak=RIGHT, context={"who": "them"})
    prompt = told(play.requests[0])
    assert headings(prompt) == [
        "Guideline for your reply", "Customer's latest message", "Response format", "Tools"
    ]  # fmt: skip
    assert section(prompt, "Guideline") == ["Help them with Ana."]
    assert section(prompt, "Customer's latest message") == ['"hello"']


async def test_a_message_is_shown_in_the_prompt_alone() -> None:
    """Not once more as the last thing of the conversation; the messages before it are there."""
    flow = Flow("f", on=[OnMessage()], steps=[Say("Hi", id="s"), Collect("name", id="q")])
    for flows in ((flow,), ()):
        play = Play(*flows)
        await play.said("an earlier one", key="m1", judge={"fields": {}} if flows else None, speak=RIGHT)
        await play.said("xylophone", key="m2", judge={"fields": {}} if flows else None, speak=RIGHT)
        for request in play.requests:
            seen: Any = shown(request)
            assert "an earlier one" in str(seen["messages"])
            assert request.carries is not None  # what the prompt carries is left out of the conversation on the wire
            assert "xylophone" in str(request.conversation.units[request.carries])
            assert told(request).count("xylophone") == 1


async def test_without_tools_nothing_is_said_of_any() -> None:
    """There are none, or no round may call one."""
    for given in ({}, {"tools": [PRICE], "rounds": 0}):
        play = Play(Flow("f", steps=[Talk("Hi.", id="t")]), **given)  # type: ignore[arg-type]  # tools and rounds
        await play.started("f", speak=RIGHT)
        assert "Tools" not in headings(told(play.requests[0]))
        await play.said(speak=RIGHT)
        assert "Tools" not in headings(told(play.requests[0]))


async def test_a_retry_after_an_answered_message_speaks_first() -> None:
    """The customer wrote long ago, and was answered since."""
    play = Play(Flow("f", steps=[Talk("Hi.", id="t")]))
    await play.said("hello", speak=RIGHT)
    ((wake, play.clock.at),) = wakes(await play.started("f", speak=[raises("network")]))
    await play.woke(wake, speak=RIGHT)
    assert "You speak first" in told(play.requests[0])


async def test_a_field_of_an_earlier_step_that_is_used_up_is_told_when_its_step_is_done() -> None:
    """The other one was given in this very reply."""
    flow = Flow("f", steps=[Collect("ok", id="a", max_asks=1), Collect("ok", "name", id="b", max_asks=1)])
    play = Play(flow)
    await play.started("f", speak=RIGHT)
    judged = {"fields": {"ok": None, "name": None}}
    result = await play.said("I am Ana", judge=judged, speak=[says("Hi Ana", name="Ana")])
    assert [(each.about["step_id"], each.code, each.detail) for each in result.outcomes] == [
        ("a", "max-asks", "ok"), ("a", None, None), ("b", None, None), ("b", "max-asks", "ok")
    ]  # fmt: skip


async def test_later_rounds_of_the_idle_speaker_and_of_a_step_win() -> None:
    """And what they do not say takes nothing back."""
    play = Play(Flow("f", steps=[Collect("name", "size", id="q")]), tools=[PRICE])
    first = [*says("One moment.", name="Jo", size="1-10").chunks, call("price")]
    await play.started("f", speak=[first, says("There.", name=None, size="11-50")])
    assert play.data == {"name": "Jo", "size": "11-50"}


async def test_a_mention_keeps_what_it_was_given_as_its_payload_too() -> None:
    """The run's own trigger."""
    flow = Flow("r", on=[OnMention("a", extract={"who": {"type": "string"}})], steps=[Wait("1h", id="w")])
    play = Play(flow, idle="silent")
    await play.said(judge={"mentions": {"r": True}, "extract": {"r": {"who": "Zeta"}}})
    run = play.run("r")
    assert (run.payload, run.input, run.trigger_kind) == ({"who": "Zeta"}, {"who": "Zeta"}, "mention")


# ---- words that a rule refuses ---------------------------------------------------------------------------------------


def ruled(play: Play) -> Play:
    """The play with a rule that lets nobody swear."""

    @on_output
    async def rule(turn: Turn, answer: Answer) -> Allow[Answer] | Deny:
        return Deny("no") if "damn" in answer.text else ALLOW

    play.agent = play.agent.with_(features=[rule])
    return play


async def test_an_answer_that_is_refused_counts_no_ask_and_keeps_nothing() -> None:
    """The run asks on, and speaks at the next message under the same key."""
    play = ruled(Play(Flow("f", on=[OnMessage()], steps=[Collect("name", "ok", id="q")])))
    result = await play.said("Ana", speak=[says("damn", name="Ana")])
    refused = line(result, "refused")
    assert (refused.kind, refused.status, refused.key, refused.next) == ("collect", "failed", "f#m1:q:1", None)
    assert (result.messages, play.data, play.statuses, dict(play.run("f").asked)) == ((), {}, {"f": "asking"}, {})
    assert keys(await play.said(key="m2", judge={"fields": {}}, speak=RIGHT)) == ["f#m1:q:1"]


async def test_a_refused_answer_ends_a_row_of_failures() -> None:
    """The model answered; the next failure waits a minute again."""
    play = ruled(Play(Flow("f", on=[OnMessage()], steps=[Collect("ok", id="q")])))
    await play.said(key="m1", speak=[raises("network")])
    await play.said(key="m2", speak=[says("damn")])
    result = await play.said(key="m3", speak=[raises("network")])
    assert [at for _, at in wakes(result)] == [after(minutes=1)]


async def test_what_the_idle_speaker_may_not_say_is_told() -> None:
    """With the key that its message would have had, and what it cost."""
    result = await ruled(Play()).said(speak=[says("damn")])
    refused = line(result, "refused")
    assert (refused.kind, refused.status, refused.key, refused.llm_calls) == ("idle", "failed", "idle:m1", 1)
    assert (result.messages, result.status, lines(result)) == ((), "silent", [(None, "idle", "failed", "refused")])
