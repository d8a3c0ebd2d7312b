"""The moment ``text``: filters rewrite spoken text while it streams; stream and answer are the same text (§6)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.conversation.content import Mark, Text
from onrecord.conversation.messages import AssistantMessage, Round
from onrecord.conversation.outgoing import MarkDelta, TextDelta
from onrecord.errors import FeatureFailed, ModelError
from onrecord.models.chunks import TextChunk, ThinkingChunk
from onrecord.models.request import Reading, Shape, TextFilter
from onrecord.record.kinds import ModelReplied, TextSaid, TurnFailed
from onrecord.session.memory_store import MemoryStore
from onrecord.testing import FakeEffects, ScriptedModel, call, raises, reply
from onrecord.turn.director import Brief, Spoken, Stage
from onrecord.turn.moments import SLOTS, Hooks
from onrecord.turn.turn import Turn
from tests.turn.acting import Named, bodies, last_answer, read, tool, turn

pytestmark = pytest.mark.unit

Item = str | Mark


class Upper:
    """Everything in capitals; other marks pass."""

    def feed(self, item: Item, /) -> Sequence[Item]:
        return [item.upper() if isinstance(item, str) else item]

    def close(self) -> Sequence[Item]:
        return []


class Tokens:
    """Takes ``<|word|>`` out of the text, also when it is split over chunks; an open one at the end is text."""

    def __init__(self) -> None:
        self.held = ""

    def feed(self, item: Item, /) -> Sequence[Item]:
        if isinstance(item, Mark):
            return [item]
        out, text = list[Item](), self.held + item
        while (start := text.find("<|")) >= 0 and (stop := text.find("|>", start)) >= 0:
            if start:
                out.append(text[:start])
            out.append(Mark(kind="act", raw=text[start : stop + 2], value=text[start + 2 : stop]))
            text = text[stop + 2 :]
        keep = text.find("<|") if "<|" in text else len(text) - text.endswith("<")
        self.held = text[keep:]
        return [*out, text[:keep]] if text[:keep] else out

    def close(self) -> Sequence[Item]:
        held, self.held = self.held, ""
        return [held] if held else []


def filtering(make: Callable[[], Any], name: str = "filter", slot: str = "RULES") -> Named:
    """A text filter as a feature."""

    def on_text(turn: Turn) -> TextFilter:
        made: TextFilter = make()
        return made

    return Named(name, Hooks(on_text=on_text, order={"text": SLOTS["text"][slot]}))


async def streamed(*chunks: Any, features: Sequence[Any] = (), **given: Any) -> tuple[list[Any], Any]:
    """The deltas of a turn whose model streams these chunks, and its result."""
    agent: Agent[Any, Any] = Agent(ScriptedModel(reply(*chunks)), features=features, **given)
    stream = agent.turn_stream("hi", effects=FakeEffects())
    return [delta async for delta in stream], await stream.result()


async def test_stream_and_answer_are_the_same_text() -> None:
    """The raw reply stays on the record and in the conversation that models read."""
    deltas, result = await streamed("he", "llo", features=[filtering(Upper)])
    assert deltas == [TextDelta("HE", 0), TextDelta("LLO", 2)]
    assert result.text == "HELLO"
    (replied,) = bodies(result, ModelReplied)
    assert (replied.round.text, replied.shown) == ("hello", "HELLO")
    message = result.session.conversation.messages[-1]
    assert (message.text, message.rounds[0].text) == ("HELLO", "hello")


async def test_a_mark_split_over_chunks_is_one_mark_at_its_place() -> None:
    """It never flickers as text."""
    deltas, result = await streamed("Hi <", "|wa", "ve|", "> there", features=[filtering(Tokens, slot="MARKS")])
    wave = Mark(kind="act", raw="<|wave|>", value="wave")
    assert deltas == [TextDelta("Hi ", 0), MarkDelta(wave, 3), TextDelta(" there", 3)]
    assert result.text == "Hi  there"
    assert result.marks == (wave,)
    (said,) = bodies(result, TextSaid)
    assert said.shown == (Text("Hi "), wave, Text(" there"))
    assert isinstance(result.session.conversation.messages[-1], AssistantMessage)
    assert result.session.conversation.messages[-1].shown == said.shown


async def test_what_a_filter_holds_back_comes_out_at_the_end() -> None:
    """A token that never closes was text."""
    deltas, result = await streamed("a <|b", features=[filtering(Tokens)])
    assert [d.text for d in deltas] == ["a ", "<|b"]
    assert result.text == "a <|b"


async def test_filters_run_in_slot_order_and_what_one_holds_back_passes_the_later_ones() -> None:
    """The first filter's last words meet the second filter too."""
    features = [filtering(Upper, "upper", "RULES"), filtering(Tokens, "tokens", "MARKS")]
    _, result = await streamed("a <|b|> c<|d", features=features)
    assert result.text == "A  C<|D"
    assert [m.value for m in result.marks] == ["b"]


async def test_a_filter_lives_for_one_round() -> None:
    """Nothing of a round that called tools leaks into the next."""
    made: list[Tokens] = []

    def make() -> Tokens:
        made.append(Tokens())
        return made[-1]

    model = ScriptedModel(reply("look <|x", call("lookup")), "done")
    result = await turn(Agent(model, tools=[tool()], features=[filtering(make)]))
    assert len(made) == 2
    assert result.text == "done"


async def test_reasoning_is_not_filtered_and_refusals_are() -> None:
    """Filters are for words meant for a person."""
    chunks = (ThinkingChunk("hmm"), TextChunk("no", refusal=True))
    _, result = await streamed(*chunks, features=[filtering(Upper)])
    assert result.text == "NO"
    (replied,) = bodies(result, ModelReplied)
    assert [(type(p).__name__, p.text) for p in replied.round.content if hasattr(p, "text")] == [
        ("Thinking", "hmm"), ("Refusal", "no")
    ]  # fmt: skip


class Raising:
    """Fails where it is told to."""

    def __init__(self, where: str) -> None:
        self.where = where

    def feed(self, item: Item, /) -> Sequence[Item]:
        if self.where == "feed":
            raise ValueError("secret")
        return [item]

    def close(self) -> Sequence[Item]:
        raise ValueError("secret")


def unmakable() -> TextFilter:
    """A filter that cannot even be made."""
    raise ValueError("secret")


@pytest.mark.parametrize("make", [unmakable, lambda: Raising("feed"), lambda: Raising("close")])
async def test_a_filter_that_raises_fails_the_turn_by_name(make: Callable[[], Any]) -> None:
    """What was streamed may be half of it: the turn ends."""
    with pytest.raises(FeatureFailed) as failed:
        await turn(Agent(ScriptedModel("hi"), features=[filtering(make, "broken")]))
    assert str(failed.value) == "feature 'broken' failed at text: ValueError"
    assert failed.value.result is not None


# ---- shapes ----------------------------------------------------------------------------------------------------------


class Unwrapping:
    """What is between the first colon and the closing brace, as it streams."""

    def __init__(self) -> None:
        self.inside = False

    def feed(self, item: Item, /) -> Sequence[Item]:
        if isinstance(item, Mark):
            return [item]
        if not self.inside and ":" in item:
            self.inside, item = True, item.split(":", 1)[1]
        return [item.rstrip("}")] if self.inside else []

    def close(self) -> Sequence[Item]:
        return []


def envelope(made: Round) -> Reading[str]:
    """What stands behind the colon."""
    text = made.text.split(":", 1)[-1].rstrip("}")
    return Reading(text=text, value=text.strip().lower())


ENVELOPE = Shape(name="envelope", schema={"type": "object"}, read=envelope, filter=Unwrapping)


class Enveloped:
    """A director whose speaker answers in an envelope."""

    def __init__(self, **brief: Any) -> None:
        self.brief, self.spoken = brief, list[Spoken]()

    async def direct(self, turn: Turn, stage: Stage, /) -> None:
        self.spoken.append(await stage.speak(Brief(key="answer", **{"shape": ENVELOPE, **self.brief})))


async def test_a_shape_unwraps_its_envelope_while_it_streams() -> None:
    """Before any filter of a feature; the value is what the shape reads of the whole round."""
    director = Enveloped()
    deltas, result = await streamed("{message", ":he", "llo}", features=[filtering(Upper)], director=director)
    assert [d.text for d in deltas if d.text] == ["HE", "LLO"]
    assert result.text == "HELLO"
    assert director.spoken[0].value == "hello"


async def test_the_values_of_several_rounds_are_merged() -> None:
    """As the brief says; without a merge the last round's value stands."""
    model = ScriptedModel(reply("{m:one}", call("lookup")), "{m:two}")
    director = Enveloped(merge=lambda before, now: f"{before}+{now}")
    await turn(Agent(model, tools=[tool()], director=director))
    assert director.spoken[0].value == "one+two"
    model, director = ScriptedModel(reply("{m:one}", call("lookup")), "{m:two}"), Enveloped()
    await turn(Agent(model, tools=[tool()], director=director))
    assert director.spoken[0].value == "two"
    assert director.spoken[0].rounds == 2


async def test_calls_inside_an_envelope_are_calls() -> None:
    """Some models put them into their JSON: they run like any other, behind those of the wire."""
    from onrecord.conversation.messages import ToolCall

    def reading(made: Round) -> Reading[None]:
        inside = (ToolCall(id="", wire_id="", name="b", raw_args='{"n":1}', args={"n": 1}),)
        return Reading(text=made.text, value=None, calls=inside if "calls" in made.text else ())

    shape = Shape(name="s", schema={}, read=reading)
    model = ScriptedModel(reply("with calls", call("a")), "done")
    result = await turn(Agent(model, tools=[tool("a"), tool("b")], director=Enveloped(shape=shape)))
    told = read(model.requests[1])["messages"]
    assert [(m["name"], m["content"]) for m in told if m["role"] == "tool"] == [("a", "a"), ("b", "b")]
    ids = [c.id.rsplit("/", 1)[-1] for r in last_answer(result).rounds for c in r.calls]
    assert ids == ["c0", "c1"]


async def test_held_drafts_release_marks_at_their_places() -> None:
    """What was accepted streams as it would have; a rewritten text has no places for them any more."""
    from msgspec.structs import replace

    from onrecord.turn.moments import ALLOW, Allow

    def judging(text: str) -> Named:
        async def judge(turn: Turn, answer: Any) -> Any:
            return Allow(replace(answer, text=text), "rewrites") if text else ALLOW

        return Named("judge", Hooks(on_output=judge, holds_drafts=True))

    deltas, result = await streamed("Hi <|a|>there", features=[filtering(Tokens), judging("")])
    wave = Mark(kind="act", raw="<|a|>", value="a")
    assert deltas == [TextDelta("Hi ", 0), MarkDelta(wave, 3), TextDelta("there", 3)]
    assert result.marks == (wave,)
    deltas, result = await streamed("Hi <|a|>there", features=[filtering(Tokens), judging("Hello")])
    assert (deltas, result.marks) == ([TextDelta("Hello", 0)], ())


async def test_marks_without_a_reader_are_kept_all_the_same() -> None:
    """A reply that is nothing but a mark, and one that begins with it."""
    from onrecord.turn.moments import ALLOW

    async def accept(*_: Any) -> Any:
        return ALLOW

    held = Named("accept", Hooks(on_output=accept, holds_drafts=True))
    result = await turn(Agent(ScriptedModel("<|a|>Hi<|b|>"), features=[filtering(Tokens), held]))
    (said,) = bodies(result, TextSaid)
    assert [type(item).__name__ for item in said.shown] == ["Mark", "Text", "Mark"]
    assert [m.value for m in result.marks] == ["a", "b"]


async def test_words_between_marks_can_be_stored() -> None:
    """A pair of surrogates cut in two by the stream is whole again; half of one is replaced."""
    result = await turn(Agent(ScriptedModel(["<|a|>ok \ud83d", "\ude00 and \ud83d"]), features=[filtering(Tokens)]))
    (said,) = bodies(result, TextSaid)
    assert [item.text for item in said.shown if isinstance(item, Text)] == ["ok 😀 and �"]
    async with MemoryStore() as store:
        assert (await store.commit(result.change())).conversation.messages[-1] == last_answer(result)


async def test_what_was_shown_before_a_failure_can_be_stored() -> None:
    """A stream that breaks off in the middle of a character leaves a turn that is kept."""
    agent = Agent(ScriptedModel(reply("ok \ud83d", raises("network"))))
    stream = agent.turn_stream("hi", effects=FakeEffects())
    with pytest.raises(ModelError) as failed:
        await stream.result()
    kept = failed.value.result
    assert kept is not None
    (end,) = bodies(kept, TurnFailed)
    assert end.shown == (Text("ok �"),)
    async with MemoryStore() as store:
        await store.commit(kept.change())
