"""The status: what an agent is doing right now, in the first person."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onrecord.agent import Agent
from onrecord.conversation.inputs import Ask, approved
from onrecord.conversation.outgoing import CallDelta, ProgressDelta, TextDelta
from onrecord.governance.rules import before_tool
from onrecord.honesty import Commentary, Language
from onrecord.record.entry import Body, Entry
from onrecord.record.kinds import (
    ModelRequested,
    ToolReturned,
    ToolStarted,
    TurnClosed,
    TurnInterrupted,
    TurnOpened,
)
from onrecord.testing import FakeEffects, ScriptedModel, call
from onrecord.turn.moments import Watch
from tests.strategies import bodies
from tests.turn.acting import tool, turn

pytestmark = pytest.mark.unit

NOW = FakeEffects().now()
OPENED = TurnOpened(input_kind="said", row="r", now=NOW)


def entry(body: Body, turn: str = "t") -> Entry:
    """An entry with this body."""
    return Entry(seq=0, n=0, turn=turn, take=1, where="main", at=NOW, cause=None, body=body)


def started(name: str, call: str = "c0", **args: Any) -> Entry:
    """A call that runs now."""
    return entry(ToolStarted(call=call, round="r", name=name, args=args, key="k"))


def returned(call: str = "c0") -> Entry:
    """The same, over."""
    return entry(ToolReturned(call=call, round="r", name="x", status="returned"))


def test_a_turn_from_beginning_to_end() -> None:
    """Thinking, a tool, thinking again, words, and nothing once it is over."""
    line = Commentary().follow()
    assert line.text == ""
    asked = entry(ModelRequested(round="t/answer/r1", purpose="speak", model="m"))
    steps: list[tuple[Entry | TextDelta, str]] = [
        (entry(OPENED), "I am thinking…"),
        (started("look"), "I am using look…"),
        (returned(), "I am thinking…"),
        (asked, "I am thinking…"),
        (TextDelta("It "), "It"),
        (TextDelta("rains."), "It rains."),
        (entry(TurnClosed(status="answered")), ""),
    ]
    assert [line.see(item) for item, _ in steps] == [text for _, text in steps]


def test_183_a_tool_has_a_status_of_its_own() -> None:
    """While it runs; another tool has the one of all tools."""
    line = Commentary(status={"tool.weather": "Looking up the weather…"}).follow()
    line.see(entry(OPENED))
    assert line.see(started("weather")) == "Looking up the weather…"
    line.see(returned())
    assert line.see(started("mail")) == "I am using mail…"


def test_a_status_may_name_an_argument() -> None:
    """That one only, and the whole of them where it says so."""
    line = Commentary(status={"tool.weather": "Weather in {{args.city}}…", "tool.mail": "{{args}}"}).follow()
    line.see(entry(OPENED))
    assert line.see(started("weather", city="Porto", pin=7)) == "Weather in Porto…"
    assert line.see(started("mail", "c1", to="ana")) == '{"to":"ana"}'


def test_of_several_calls_the_one_that_began_last_is_told() -> None:
    """Or told of its progress last; and the one before it again, once that is over; words wait behind both."""
    line = Commentary().follow()
    line.see(entry(OPENED))
    line.see(started("one", "c0"))
    assert line.see(started("two", "c1")) == "I am using two…"
    line.see(TextDelta("words"))
    assert line.see(ProgressDelta(id="c0", name="one", message="half of one")) == "half of one"
    assert line.see(ProgressDelta(id="c1", name="two", message="half of two")) == "half of two"
    assert line.see(returned("c1")) == "half of one"
    assert line.see(returned("c0")) == "I am thinking…"


def test_deltas_alone_tell_of_calls() -> None:
    """For those who only have a stream."""
    line = Commentary().follow()
    line.see(entry(OPENED))
    assert line.see(CallDelta(id="c", name="look", status="asked")) == "I am using look…"
    assert line.see(CallDelta(id="c", name="look", status="returned")) == "I am thinking…"


def test_long_words_are_cut_in_front() -> None:
    """The last of them shows, and that something stood before it."""
    line = Commentary().follow()
    line.see(entry(OPENED))
    for n in range(100):
        line.see(TextDelta(f"word {n} "))
    assert line.text.startswith("…")
    assert line.text.endswith("word 99")
    assert len(line.text) <= 120


async def test_a_question_comes_before_everything() -> None:
    """It is shown to the one whom it asks, and not to others; the answer takes it away."""
    for audience, told in (
        ("speaker", "I am waiting for an answer: Pay 300?"),
        ("approver", "I am waiting for somebody to decide."),
    ):
        ask = Ask("Pay 300?", audience=audience)

        @before_tool
        async def asks(turn: Any, call: Any, ask: Ask = ask) -> Any:
            return ask

        line = Commentary().follow()
        agent = Agent(ScriptedModel([call("pay")], "Paid."), tools=[tool("pay")], features=[asks, Watch(line.see)])
        paused = await turn(agent, session="s")
        assert line.text == told
        assert line.see(TextDelta("words")) == told
        assert paused.question is not None
        answered = await turn(agent, approved(paused.question, by="ana"), session=paused.session)
        assert (answered.status, line.text) == ("answered", "")


def test_another_turn_ends_only_itself() -> None:
    """An interruption of a turn that is over long since says nothing about this one."""
    line = Commentary().follow()
    line.see(entry(OPENED))
    assert line.see(entry(TurnInterrupted(id="i", cause="left", of="old"), turn="s:interruption:i")) == "I am thinking…"
    assert line.see(entry(TurnInterrupted(id="i", cause="left", of="t"))) == ""


@settings(max_examples=60, deadline=None)
@given(items=st.lists(bodies.map(entry) | st.text().map(TextDelta), max_size=8))
def test_any_record_has_a_status(items: list[Any]) -> None:
    """In one line and short, whatever comes in whatever order."""
    for language in get_args(Language):
        line = Commentary(language=language).follow()
        for item in items:
            told = line.see(item)
            assert told == line.text
            assert "\n" not in told
            assert len(told) <= 200
