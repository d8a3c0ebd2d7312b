"""Thinking: asked for with every request, refused where it cannot be, and kept as a handler says."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from msgspec import Raw

from onrecord.agent import Agent
from onrecord.conversation.content import Thinking as Thought
from onrecord.conversation.outgoing import Delta, ReasoningDelta, TextDelta
from onrecord.errors import (
    ConfigurationError,
    FeatureConflict,
    ModelError,
    UnsupportedThinkingError,
)
from onrecord.models.chunks import NativeItem, ThinkingChunk
from onrecord.models.fallback import Fallback
from onrecord.models.model import ModelCard, preset
from onrecord.models.request import Settings
from onrecord.models.retry import Reliable
from onrecord.prompt.model_choice import Choice, Choose
from onrecord.prompt.thinking import Thinking
from onrecord.providers.anthropic.cards import anthropic_card
from onrecord.providers.anthropic.project import AnthropicProjection
from onrecord.providers.openai_chat.cards import Dialect
from onrecord.providers.openai_chat.project import ChatProjection
from onrecord.record.jsonl import EntryCodec
from onrecord.record.kinds import ModelReplied, ModelRequested, Noted
from onrecord.session.codec import dumps_session
from onrecord.testing import ScriptedModel, reply
from tests.models.requests import CARD
from tests.models.wired import WiredModel, chat, gemini, messages, responses
from tests.turn.acting import bodies, call, rounds_of, tool, turn
from tests.turn.test_moment_request import Asking

pytestmark = pytest.mark.unit


def thinks(*answers: Any, thinking: Any = "adaptive", **more: Any) -> ScriptedModel:
    """A model whose card says how it thinks."""
    card = ModelCard(provider="p", model="deep", protocol="scripted", thinking=thinking, least_thinking=1024)
    return ScriptedModel(*answers, card=card, **more)


SEVEN: Any = 7


# ---- asking ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", [0, -1, float("inf"), float("nan"), True, "4096"])
def test_l138_a_budget_is_a_positive_finite_number(budget: Any) -> None:
    """Anything else is refused when it is declared (case L138)."""
    with pytest.raises(ConfigurationError, match="the budget of Thinking is a positive number of tokens"):
        Thinking(budget)


def test_thinking_that_says_nothing_is_refused() -> None:
    """And a handler is a function."""
    with pytest.raises(ConfigurationError, match=r"Thinking\(\) asks for nothing"):
        Thinking()
    with pytest.raises(ConfigurationError, match="the handler of Thinking is a function of a text, not a int"):
        Thinking(4096, handler=SEVEN)


@pytest.mark.parametrize("wrap", [lambda m: m, Reliable, lambda m: preset(m, temperature=1.0)])
async def test_every_request_of_a_turn_asks_through_wrappers_too(wrap: Callable[[Any], Any]) -> None:
    """The settings of the request go with it, whatever stands around the model; the receipt says so."""
    model = thinks([call("lookup")], "done")
    result = await turn(Agent(wrap(model), tools=[tool()], features=[Thinking(5000)]))
    assert [asked.settings.thinking for asked in model.requests] == [5000, 5000]
    receipts = [body.receipt for body in bodies(result, ModelRequested)]
    assert all(held is not None and held.settings["thinking"] == 5000 for held in receipts)


async def test_a_request_that_was_given_its_own_thinking_keeps_it() -> None:
    """A chooser knows more of this one request."""
    model = thinks("done")
    quick = Choose(lambda *_: Choice(settings=Settings(thinking="none")))
    await turn(Agent(model, features=[Thinking(5000), quick]))
    assert model.requests[0].settings.thinking == "none"


def test_l192_a_model_that_does_not_think_is_refused_when_the_agent_is_made() -> None:
    """By name. The bodies of thinking requests belong to the wires (case L192)."""
    with pytest.raises(UnsupportedThinkingError, match="model 'p:deep' does not think before it speaks") as refused:
        Agent(thinks(thinking="none"), features=[Thinking(5000)])
    assert refused.value.code == "unsupported-thinking"
    assert "stand in for each other" in refused.value.hint  # or the first of them would be blamed for another
    Agent(thinks(thinking="none"), features=[Thinking(handler=None)])  # this one asks for nothing


@pytest.mark.parametrize("budget", [1000, 1023, 2000.5])
def test_l192_models_with_budgets_take_whole_ones_from_1024_on(budget: float) -> None:
    """Models that decide for themselves are not sent it."""
    with pytest.raises(UnsupportedThinkingError, match=f"takes a whole budget from 1024 tokens on, not {budget:g}"):
        Agent(thinks(thinking="budget"), features=[Thinking(budget)])
    Agent(thinks(thinking="adaptive"), features=[Thinking(budget)])
    Agent(thinks(thinking="budget"), features=[Thinking(1024.0)])


async def test_a_model_that_is_chosen_later_and_does_not_think_fails_before_it_is_asked() -> None:
    """Nobody knew it when the agent was made."""
    dull = thinks("never", thinking="none")
    with pytest.raises(UnsupportedThinkingError, match="does not think") as failed:
        await turn(Agent(lambda _: dull, features=[Thinking(5000)]))
    assert str(failed.value) == "model 'p:deep' does not think before it speaks"
    assert (failed.value.kind, failed.value.provider, failed.value.code) == ("invalid", "p", "unsupported-thinking")
    with pytest.raises(UnsupportedThinkingError, match="does not think"):
        await turn(Agent(thinks("never"), features=[Choose(lambda *_: dull), Thinking(5000)]))
    assert dull.requests == []


def test_the_refusal_to_think_is_a_fault_of_the_declaration_and_of_the_call() -> None:
    """So it is caught by either name, and crosses processes whole."""
    error = UnsupportedThinkingError("told", provider="p", hint="do")
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 - its own bytes
    for each in (error, again):
        assert isinstance(each, ConfigurationError)
        assert isinstance(each, ModelError)
        assert (str(each), each.kind, each.provider, each.hint, each.started) == ("told", "invalid", "p", "do", False)


def test_a4_thinking_is_given_once() -> None:
    """Asking twice, or two handlers, would say two things (case A4)."""
    for two in ([Thinking(5000), Thinking(6000)], [Thinking(5000), Thinking(handler=None)]):
        with pytest.raises(FeatureConflict, match="the feature 'thinking' is given twice"):
            Agent(thinks(), features=two)


# ---- what is kept ----------------------------------------------------------------------------------------------------

SECRET = "the-secret-words"
NATIVE = Raw(b'{"role":"assistant","content":"Yes.","reasoning":"kept for the vendor"}')


def reasoned() -> ScriptedModel:
    """It thinks in two stretches around a word, and has an item of its own."""
    thought = (ThinkingChunk("so "), ThinkingChunk(SECRET), "Ye", ThinkingChunk("sure"), "s.", NativeItem(raw=NATIVE))
    return thinks(reply(*thought))


async def heard(*features: Any) -> tuple[Any, list[Delta]]:
    """A turn that is read along."""
    agent: Agent[Any, Any] = Agent(reasoned(), features=features)
    deltas = list[Delta]()
    async with agent.turn_stream("hi") as stream:
        async for delta in stream:
            deltas.append(delta)
    return await stream.result(), deltas


def thoughts(result: Any) -> list[str]:
    """The reasoning that the session keeps."""
    return [part.text for held in rounds_of(result) for part in held.content if isinstance(part, Thought)]


async def test_l193_without_a_handler_reasoning_is_kept_and_streamed_as_it_comes() -> None:
    """As the wire read it (case L193)."""
    result, deltas = await heard(Thinking(5000))
    assert thoughts(result) == [f"so {SECRET}", "sure"]
    assert [d.text for d in deltas if isinstance(d, ReasoningDelta)] == ["so ", SECRET, "sure"]


async def test_l193_a_handler_decides_what_is_kept_before_anybody_sees_it() -> None:
    """Neither the stream nor the record ever holds what it took out (case L193)."""
    result, deltas = await heard(Thinking(5000, handler=lambda words: words.replace(SECRET, "[...]")))
    assert thoughts(result) == ["so [...]", "sure"]
    assert [d.text for d in deltas if isinstance(d, (ReasoningDelta, TextDelta))] == ["so [...]", "Ye", "sure", "s."]
    assert SECRET.encode() not in b"".join(EntryCodec().lines(result.entries))
    assert result.text == "Yes."


async def test_l193_with_none_there_is_no_reasoning_and_the_answer_is_the_same() -> None:
    """Not in the record, not in the stream (case L193)."""
    result, deltas = await heard(Thinking(5000, handler=None))
    assert thoughts(result) == []
    assert not any(isinstance(delta, ReasoningDelta) for delta in deltas)
    assert result.text == "Yes."
    assert result.session is not None
    assert SECRET.encode() not in dumps_session(result.session)


@pytest.mark.parametrize("handler", [None, str.upper])
async def test_what_the_vendor_wants_back_is_left_alone(handler: Any) -> None:
    """The continuation is the vendor's own, and goes back to it untouched."""
    result, _ = await heard(Thinking(5000, handler=handler))
    (held,) = rounds_of(result)
    assert held.continuation is not None
    assert held.continuation.items == (NATIVE,)


@pytest.mark.parametrize(
    ("handler", "told"), [(lambda _: 1 / 0, "ZeroDivisionError"), (lambda _: 7, "it returned int, not a text")]
)
async def test_l155_a_handler_that_fails_costs_the_reasoning_and_not_the_answer(handler: Any, told: str) -> None:
    """Noted once for each stretch (case L155)."""
    result, _ = await heard(Thinking(5000, handler=handler))
    assert thoughts(result) == []
    assert [(note.by, note.text) for note in bodies(result, Noted)] == [
        ("thinking", f"reasoning was dropped: {told}")
    ] * 2  # fmt: skip
    assert result.text == "Yes."


async def test_reasoning_in_front_of_a_call_passes_the_handler_too() -> None:
    """In every round, before the call is made."""
    model = thinks([ThinkingChunk(SECRET), call("lookup")], "done")
    result = await turn(Agent(model, tools=[tool()], features=[Thinking(handler=lambda _: "thought")]))
    assert thoughts(result) == ["thought"]
    assert [type(part).__name__ for part in bodies(result, ModelReplied)[0].round.content] == ["Thinking", "CallRef"]


async def test_silent_calls_pass_the_handler_too() -> None:
    """What a judge thinks is filed like anything else."""
    model = thinks("done", judge=[[ThinkingChunk(SECRET), "J"]], consult=[[ThinkingChunk(SECRET), "C"]])
    result = await turn(Agent(model, director=Asking(said=[]), features=[Thinking(5000, handler=None)]))
    assert SECRET.encode() not in b"".join(EntryCodec().lines(result.entries))
    assert [asked.settings.thinking for asked in model.requests] == [5000, None, 5000]  # no hook runs for a consult


@pytest.mark.parametrize(
    ("name", "thinking"),
    [
        ("claude-haiku-4-5", {"type": "enabled", "budget_tokens": 5000}),
        ("claude-opus-5-5", {"type": "adaptive", "display": "summarized"}),
        ("a-model-of-tomorrow", {"type": "adaptive", "display": "summarized"}),
    ],
)
async def test_l138_l192_claude_is_asked_as_its_card_says(name: str, thinking: Any) -> None:
    """A budget, or none on the wire; the cap is raised above it either way (cases L138 and L192)."""
    card = anthropic_card(name)
    model = WiredModel(AnthropicProjection(card), "done", card=card)
    await turn(Agent(model, features=[Thinking(5000)]))
    body = json.loads(model.bodies[0])
    assert (body["thinking"], body["max_tokens"]) == (thinking, 6024)


@pytest.mark.parametrize("name", ["claude-haiku-4-5", "claude-opus-4-8", "claude-opus-5-5"])
async def test_l192_a_temperature_beside_thinking_is_refused_before_anything_is_sent(name: str) -> None:
    """By the wire, which alone knows what a preset adds; whether the model has budgets or not (case L192)."""
    card = anthropic_card(name)
    model = WiredModel(AnthropicProjection(card), "never", card=card)
    with pytest.raises(UnsupportedThinkingError, match=r"request: temperature 0\.5 with thinking") as failed:
        await turn(Agent(preset(model, temperature=0.5), features=[Thinking(5000)]))
    assert (failed.value.kind, model.bodies) == ("invalid", [])


@pytest.mark.parametrize(
    ("wired", "thinking", "told"),
    [
        (lambda: messages(model="claude-haiku-4-5"), 500, "takes a budget, a whole number of tokens"),
        (lambda: messages(model="claude-haiku-4-5"), "high", "takes a budget, a whole number of tokens"),
        (lambda: responses(model="gpt-4.1"), "low", "thinking: 'openai-responses:gpt-4.1' has none"),
        (lambda: WiredModel(ChatProjection(CARD, Dialect(thinking=None))), "low", "thinking: 'acme:m' has none"),
        (lambda: gemini(model="gemini-2.5-pro"), 64, "takes 128 to 32768 tokens"),
    ],
)
async def test_settings_that_ask_a_model_to_think_otherwise_than_it_can_are_the_same_refusal(
    wired: Callable[[], WiredModel], thinking: Any, told: str
) -> None:
    """Of every wire that says how its models think, whoever asked: here a preset and no feature."""
    model = wired()
    with pytest.raises(UnsupportedThinkingError, match=told) as failed:
        await turn(Agent(preset(model, thinking=thinking)))
    assert (failed.value.kind, model.bodies) == ("invalid", [])


@pytest.mark.parametrize("wrapper", [Reliable, Fallback])
async def test_a_model_that_takes_the_request_answers_for_one_that_cannot_think_so(wrapper: Any) -> None:
    """The refusal is one of the wire, and nothing was sent to the first."""
    first, other = anthropic_card("claude-haiku-4-5"), anthropic_card("claude-opus-4-1")
    strict = WiredModel(AnthropicProjection(first), "never", card=first)
    quiet = WiredModel(AnthropicProjection(other), "hi", card=other)
    model = wrapper(preset(strict, temperature=0.5), quiet)
    result = await turn(Agent(model, features=[Thinking(5000)]))
    assert (result.text, strict.bodies, len(quiet.bodies)) == ("hi", [], 1)


async def test_chat_models_are_sent_what_their_dialect_has() -> None:
    """A budget in tokens has no place among efforts: such a body is as it was."""
    sent = []
    for features in ([], [Thinking(5000)]):
        model = chat("hi", thinking="adaptive")
        await turn(Agent(model, features=features))
        sent.append(model.bodies)
    assert sent[0] == sent[1]


def test_the_record_says_how_it_is_set_up() -> None:
    """In the manifest of each turn."""

    def tidy(words: str) -> str:
        return words

    for feature, about in (
        (Thinking(5000), {"budget": 5000}),
        (Thinking(handler=None), {"handler": "none"}),
        (Thinking(5000, handler=tidy), {"budget": 5000, "handler": "own"}),
    ):
        assert Agent(thinks(), features=[feature]).spec.manifest["thinking"] == about
