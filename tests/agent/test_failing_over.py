"""One conversation over two vendors: it fails over, comes back, loses nothing, and every round says who gave it."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from msgspec import Raw

from onrecord.agent import Agent
from onrecord.conversation.content import Image, Text
from onrecord.conversation.inputs import Said
from onrecord.conversation.messages import AssistantMessage, Round
from onrecord.conversation.outgoing import TextDelta
from onrecord.conversation.usage import Usage
from onrecord.errors import GivenUp, ModelError
from onrecord.models.breaker import Breaker
from onrecord.models.call_rules import CallRule
from onrecord.models.chunks import CallChunk, Chunk, Finished, NativeItem, TextChunk
from onrecord.models.fallback import Fallback
from onrecord.models.model import Model, ModelCard, preset
from onrecord.models.request import Request, Wire
from onrecord.models.retry import Reliable
from onrecord.prompt.media import Degrade
from onrecord.prompt.model_choice import Choose
from onrecord.providers.openai_chat.cards import PROTOCOL, Dialect
from onrecord.providers.openai_chat.project import ChatProjection
from onrecord.record.kinds import ModelAttempted, ModelReplied, ModelRequested
from onrecord.record.receipts import LeftMark
from onrecord.session import record_of
from onrecord.session.quoting import Names, unquoted
from onrecord.session.session import Session
from onrecord.testing import raises
from onrecord.turn.receipt import rebuild
from onrecord.turn.result import TurnResult
from tests.models import wired
from tests.models.failing import BUSY, Clock, error
from tests.models.merging import MergingWire
from tests.turn.acting import bodies, tool, turn

pytestmark = pytest.mark.unit


class Vendor:
    """A model of a vendor with a wire of its own, which keeps what it says natively. Its bodies are kept."""

    def __init__(self, name: str, projection: Any, protocol: str, *scripts: list[Any]) -> None:
        self._card = ModelCard(provider=name, model="m", protocol=protocol, base_url=f"https://{name}/v1")
        self._projection = projection(self._card)
        self.scripts, self.bodies = list(scripts), list[str]()

    @property
    def card(self) -> ModelCard:
        """Of the vendor."""
        return self._card

    def wire(self, asked: Request, /) -> Wire:
        """The real bytes of the wire."""
        return self._projection.wire(asked)  # type: ignore[no-any-return]

    async def stream(self, asked: Request, /) -> AsyncGenerator[Chunk, None]:
        """The next script; what it says is native to the vendor, too."""
        self.bodies.append((asked.wire or self.wire(asked)).body.decode())
        for item in self.scripts.pop(0):
            if isinstance(item, Exception):
                raise item
            if isinstance(item, str):
                said = {"role": "assistant", "content": f"{item} <{self._card.provider}>"}
                yield NativeItem(raw=Raw(json.dumps(said)))
                yield TextChunk(item)
            else:
                yield item
        yield Finished(usage=Usage(input_tokens=1, output_tokens=1))


def chat(name: str, *scripts: list[Any]) -> Vendor:
    """A vendor of Chat Completions."""
    return Vendor(name, lambda card: ChatProjection(card, Dialect(), {}), PROTOCOL, *scripts)


def merging(name: str, *scripts: list[Any]) -> Vendor:
    """A vendor whose wire merges neighbouring entries."""
    return Vendor(name, lambda _: MergingWire(), "merging", *scripts)


def rounds(session: Session) -> list[Round]:
    """All rounds of a conversation."""
    found = [m for m in session.conversation.messages if isinstance(m, AssistantMessage)]
    return [held for message in found for held in message.rounds]


async def talk(model: Model, *words: str) -> tuple[list[TurnResult[Any]], Session]:
    """One turn after the other."""
    agent: Agent[Any, Any] = Agent(model, instructions="Be brief.", tools=[tool()])
    results: list[TurnResult[Any]] = []
    session: Session | None = None
    for said in words:
        result = await turn(agent, said, **({"session": session} if session else {}))
        results.append(result)
        session = result.session
    assert session is not None
    return results, session


@pytest.mark.parametrize("other", [chat, merging])
@pytest.mark.parametrize("wrapper", ["reliable", "fallback"])
async def test_a_conversation_fails_over_and_comes_back_and_loses_nothing(wrapper: str, other: Any) -> None:
    """Each vendor gets back natively what it said, and what the other said in words; rounds are filed under it."""
    clock = Clock()
    a = chat("a", ["one"], [error("overload")], ["three"])
    b = other("b", ["two"])
    model: Model = Fallback(a, b, clock=clock, now=clock.now) if wrapper == "fallback" else Reliable(a, b, waits_s=())

    async def talked() -> tuple[list[TurnResult[Any]], Session]:
        agent: Agent[Any, Any] = Agent(model, instructions="Be brief.")
        first = await turn(agent, "q1")
        second = await turn(agent, "q2", session=first.session)
        clock.at += 60
        third = await turn(agent, "q3", session=second.session)
        assert third.session is not None
        return [first, second, third], third.session

    results, session = await talked()
    assert [result.text for result in results] == ["one", "two", "three"]
    held = rounds(session)
    assert [r.use.provider for r in held if r.use] == ["a", "b", "a"]
    assert [json.loads(r.continuation.scope)[0] for r in held if r.continuation] == ["a", "b", "a"]
    assert [r.continuation.protocol for r in held if r.continuation] == [
        PROTOCOL, b.card.protocol, PROTOCOL,
    ]  # fmt: skip
    assert [(n.error, n.model) for n in bodies(results[1], ModelAttempted)] == [("overload", "a:m")]
    # b read what a had said, in words only
    assert ("one" in b.bodies[0], "<a>" in b.bodies[0]) == (True, False)
    # and a reads its own words natively and b's in words
    back = a.bodies[-1]
    assert ("one <a>" in back, "two" in back, "<b>" in back) == (True, True, False)


@pytest.mark.parametrize("other", [chat, merging])
@pytest.mark.parametrize("wrapper", [lambda *models: Reliable(*models, waits_s=()), Fallback])
async def test_the_bytes_that_each_model_got_can_be_made_again_from_the_record(wrapper: Any, other: Any) -> None:
    """The receipt is of the request as composed; given to the model that answered instead, it is what that one got."""
    a, b = chat("a", ["one"], [BUSY]), other("b", ["two"])
    model = wrapper(a, b)
    results, session = await talk(model, "q1", "q2")
    record = record_of(session, [entry for result in results for entry in result.entries])
    second = rebuild(record, [entry.seq for entry in record if isinstance(entry.body, ModelRequested)][1])
    for each, sent in ((model, a.bodies[1]), (a, a.bodies[1]), (b, b.bodies[0])):
        assert each.wire(second.request(each)).body.decode() == sent
    assert ("<a>" in a.bodies[1], "<a>" in b.bodies[0]) == (True, False)


async def test_a_call_made_at_one_vendor_is_answered_at_the_other() -> None:
    """It fails over in the middle of a turn: the call and its result are shown there, together, under ids that fit."""
    a = chat("a", [CallChunk(wire_id="call_a", name="lookup", raw_args="{}")], [BUSY])
    b = chat("b", ["done"])
    (result,), session = await talk(Reliable(a, b, waits_s=()), "look")
    assert result.text == "done"
    shown = json.loads(b.bodies[0])["messages"]
    (call,) = [c for m in shown if m["role"] == "assistant" for c in m.get("tool_calls", [])]
    (answer,) = [m for m in shown if m["role"] == "tool"]
    assert answer["tool_call_id"] == call["id"]
    assert [r.use.provider for r in rounds(session) if r.use] == ["a", "b"]


async def test_what_was_streamed_is_never_followed_by_another_model_s_words() -> None:
    """The turn fails with what was shown."""
    a, b = chat("a", ["par", BUSY]), chat("b", ["never"])
    agent: Agent[Any, Any] = Agent(Reliable(a, b))
    stream, shown = agent.turn_stream("q"), list[str]()
    with pytest.raises(ModelError) as failed:  # noqa: PT012 - what came before it counts
        async for delta in stream:
            if isinstance(delta, TextDelta):
                shown.append(delta.text)
    assert (shown, b.bodies, failed.value.status) == (["par"], [], 503)


async def test_feedback_is_on_the_record_and_not_in_the_conversation() -> None:
    """It is part of one attempt."""
    a = chat("a", [], ["fine"], ["again"])
    blank = CallRule(only_if=lambda s: s.response is not None, then="retry", feedback="Say something.")
    (result, later), session = await talk(Reliable(a, rules=[blank]), "q1", "q2")
    (told,) = bodies(result, ModelAttempted)
    assert (told.feedback, "Say something." in a.bodies[1]) == ("Say something.", True)
    assert "Say something." not in a.bodies[2]
    assert (later.text, len(rounds(session))) == ("again", 2)
    (replied,) = bodies(result, ModelReplied)
    assert replied.round.use is not None


async def test_a_call_that_rules_gave_up_leaves_the_turn_as_a_model_error() -> None:
    """Hosts and flows tell it by its kind, people by its reason."""
    a = chat("a", [BUSY])
    rule = CallRule(only_if=lambda s: s.error is not None, then="fail_fast", kind="unrecoverable", label="no use")
    agent: Agent[Any, Any] = Agent(Reliable(a, rules=[rule]))
    with pytest.raises(GivenUp) as gone:
        await turn(agent)
    assert (gone.value.why, gone.value.kind, gone.value.result) == ("unrecoverable", "overload", None)


async def test_a_fallback_function_s_words_are_an_answer_that_no_model_gave() -> None:
    """The record says so, and no vendor gets them natively."""
    a = chat("a", [error("quota")], ["fine"])
    results, session = await talk(Reliable(a, fallback=lambda _r, _e: "We call you back."), "q1", "q2")
    assert [result.text for result in results] == ["We call you back.", "fine"]
    held = rounds(session)[0]
    assert held.use is not None
    assert (held.use.provider, held.continuation) == ("fallback", None)
    assert "We call you back." in a.bodies[-1]


@pytest.mark.parametrize("wrapper", [lambda *models: Reliable(*models, waits_s=()), Fallback])
async def test_what_the_other_model_was_not_sent_is_on_the_record(wrapper: Any) -> None:
    """The receipt is of the request as composed, for the first model; the attempt says what the next one lacks."""
    first = wired.chat(raises("overload", status=503), provider="a", base_url="http://a/v1")
    other = wired.chat("I see no picture.", provider="b", base_url="http://b/v1", images=False)
    agent: Agent[Any, Any] = Agent(wrapper(first, other), features=[Degrade()])
    result = await turn(agent, Said((Text("look"), Image(url="https://x.example/cat.png"))))
    (asked,), (told,) = bodies(result, ModelRequested), bodies(result, ModelAttempted)
    assert asked.receipt is not None
    assert (result.text, asked.receipt.left_out) == ("I see no picture.", ())
    assert [(mark.unit, mark.what) for mark in told.left_out] == [(0, "an image: 'b:m' reads none")]
    assert b"cat.png" not in other.bodies[0]


async def test_a_chosen_wrapper_fails_over_inside_one_answer_and_its_circuit_stays() -> None:
    """A wrapper that `Choose` picks is a model like any other: rounds are filed under who gave them."""
    home = chat("home", [CallChunk(wire_id="call_h", name="lookup", raw_args="{}")], ["never"])
    a, b = chat("a", [BUSY]), merging("b", ["done"], ["and again"])
    strong = Reliable(a, b, waits_s=(), breaker=Breaker(threshold=1))
    choose = Choose(lambda live, _: strong if live.rounds or live.session.conversation.messages[:-1] else None)
    agent: Agent[Any, Any] = Agent(home, tools=[tool()], features=[choose])
    first = await turn(agent, "look")
    second = await turn(agent, "again", session=first.session)
    assert [result.text for result in (first, second)] == ["done", "and again"]
    assert second.session is not None
    assert [held.use.provider for held in rounds(second.session) if held.use] == ["home", "b", "b"]
    assert [body.model for body in bodies(first, ModelRequested)] == ["home:m", "a:m"]
    assert [told.error for told in bodies(second, ModelAttempted)] == ["circuit-open"]
    assert len(a.bodies) == 1  # the second turn went past it


async def test_settings_of_a_preset_go_to_its_own_model_and_those_of_a_wrapper_to_all() -> None:
    """Inside a wrapper they are one model's, around it they are everybody's."""
    a, b = chat("a", [BUSY], [BUSY]), chat("b", ["one"], ["two"])
    for model in (Reliable(preset(a, temperature=0.5), b, waits_s=()), preset(Reliable(a, b, waits_s=()), seed=7)):
        await talk(model, "q")
    sent = [json.loads(body) for body in (*a.bodies, *b.bodies)]
    assert [(body.get("temperature"), body.get("seed")) for body in sent] == [
        (0.5, None), (None, 7), (None, None), (None, 7),
    ]  # fmt: skip


def test_what_an_attempt_left_out_goes_with_the_history_it_is_of() -> None:
    """When turns before it are erased; the attempt stays."""
    left = ModelAttempted(round="r", attempt=1, error="rate", left_out=(LeftMark(unit=0, what="an image"),))
    assert unquoted(left, Names(frozenset())) == ModelAttempted(round="r", attempt=1, error="rate")
