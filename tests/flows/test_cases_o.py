"""Cases O of the specification: the same turn, streamed."""

from __future__ import annotations

from typing import Any

import pytest

from onrecord.conversation.inputs import Said
from onrecord.errors import ModelError
from onrecord.flows import Collect, Flow, OnMessage, Say, Talk
from onrecord.testing import call, raises, reply
from onrecord.testing.scripted import Reply
from onrecord.tools.tool import Tool
from tests.flows.playing import Play, Result, after, lines, said_by, says, wakes

pytestmark = pytest.mark.unit

WELCOME = Flow("welcome", on=[OnMessage()], steps=[Collect("name", id="name"), Talk("Ask how to help.", id="help")])
PRICE = Tool("price", lambda *_: 1500)


async def streamed(play: Play, text: str, *, key: str, judge: Any = None, speak: Any = ()) -> tuple[list[str], Result]:
    """One streamed turn: its deltas and its result."""
    play.script(judge, speak)
    stream = play.agent.turn_stream(Said(text, key=key), session=play.session or play.id, effects=play.clock)
    deltas = [delta async for delta in stream.text]
    result = await stream.result()
    assert play.model.left == 0
    play.session = result.session
    return deltas, result


def pieces(whole: Reply, size: int = 3) -> Reply:
    """The same reply, its text in small pieces."""
    (text,) = whole.chunks
    return reply(*(text[at : at + size] for at in range(0, len(text), size)))


TURNS: list[dict[str, Any]] = [
    {"text": "hi", "key": "m1", "speak": [pieces(says('Hi "you"\n{there}\U0001f600', name=None))]},
    {"text": "Ana", "key": "m2", "judge": {"fields": {"name": "Ana"}}, "speak": [says("How can I help?")]},
]


async def test_o1_same_result() -> None:
    """A streamed turn comes to what the plain one comes to: keys, data, timers, lines, and its record."""
    plain, live = Play(WELCOME), Play(WELCOME)
    for turn in TURNS:
        expected = await plain.said(**turn)
        deltas, result = await streamed(live, **turn)
        assert result == expected
        assert "".join(deltas) == result.messages[0].text
    assert live.data == plain.data == {"name": "Ana"}
    assert live.state == plain.state


async def test_o1_with_a_tool_round() -> None:
    """Words beside a call are streamed, and are no part of the message."""
    play = Play(WELCOME, tools=[PRICE])
    first = reply(*says("Let me see. ").chunks, call("price"))
    deltas, result = await streamed(play, "hi", key="m1", speak=[first, says("It is 1500.")])
    assert "".join(deltas) == "Let me see. It is 1500."
    assert said_by(result) == [("It is 1500.", "ai", "welcome#m1:name:1")]


async def test_o7_failure() -> None:
    """A failure after two deltas does not raise: the result is deferred, with a retry, and nothing went out."""
    play = Play(WELCOME)
    broken = reply('{"message":"Your', " name", raises("network"))
    deltas, result = await streamed(play, "hi", key="m1", speak=[broken])
    assert deltas == ["Your", " name"]
    assert lines(result) == [("name", "collect", "deferred", "provider-unavailable")]
    assert wakes(result) == [("welcome#m1:name:1:retry:1789898460000", after(minutes=1))]
    assert (result.messages, result.status) == ((), "deferred")
    play.clock.advance(minutes=1)
    again = await play.woke("welcome#m1:name:1:retry:1789898460000", speak=[says("Your name?")])
    assert said_by(again) == [("Your name?", "ai", "welcome#m1:name:1")]


async def test_o8_nobody_speaks() -> None:
    """Where nobody speaks there is nothing but the result."""
    play = Play(idle="silent")
    deltas, result = await streamed(play, "hi", key="m1")
    assert (deltas, result.changed, result.messages) == ([], True, ())


async def test_o8_understand_failure() -> None:
    """A failure of the understand call raises before any delta, and nothing of the turn is kept."""
    play = Play(WELCOME)
    await play.said(key="m1", speak=[says("Your name?")])
    before = play.kept
    play.script(raises("network"), [])
    stream = play.agent.turn_stream(Said("Ana", key="m2"), session=before, effects=play.clock)
    heard: list[str] = []
    with pytest.raises(ModelError, match="scripted network") as failed:
        heard += [delta async for delta in stream.text]
    assert (heard, failed.value.result, play.kept) == ([], None, before)
    again = await play.said("Ana", key="m2", judge={"fields": {"name": "Ana"}}, speak=[says("How can I help?")])
    assert said_by(again) == [("How can I help?", "ai", "welcome#m1:help:1")]


async def test_o_lines_said_word_for_word_are_in_the_result() -> None:
    """A line that no model wrote is a message of the result, after the order in which it was said."""
    play = Play(Flow("f", on=[OnMessage()], steps=[Say("A", id="a"), Talk("Answer.", id="t")]))
    deltas, result = await streamed(play, "hi", key="m1", speak=[says("B")])
    assert said_by(result) == [("A", "verbatim", "f#m1:a:1"), ("B", "ai", "f#m1:t:1")]
    assert "".join(deltas).endswith("B")
