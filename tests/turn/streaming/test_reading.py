"""A turn read while it runs: its deltas add up to its text, and a turn is the drained stream."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from onrecord.agent import Agent
from onrecord.conversation.content import Mark
from onrecord.conversation.inputs import Said
from onrecord.conversation.outgoing import CallDelta, Delta, MarkDelta, ReasoningDelta, TextDelta
from onrecord.errors import AnswerRefused, ModelError, UsageError
from onrecord.governance.rules import on_output
from onrecord.models.chunks import TextChunk, ThinkingChunk
from onrecord.testing import FakeEffects, ScriptedModel, call, raises, reply
from onrecord.turn.moments import Allow, Answer, Deny, Hooks, Revise
from onrecord.turn.stream import TurnStream
from onrecord.turn.turn import Turn
from tests.turn.acting import Named, Result, kinds, tool, turn
from tests.turn.interrupting.live import WAIT, Halting, stream, until
from tests.turn.pausing.asking import approve, checked

pytestmark = pytest.mark.unit


async def drained(reading: TurnStream[Any]) -> list[Delta]:
    """Every delta of a stream."""
    return [delta async for delta in reading]


async def into(seen: list[Delta], reading: TurnStream[Any]) -> None:
    """Reads as far as it goes."""
    async for batch in reading.batches():
        seen += batch


def words(deltas: Sequence[Delta]) -> str:
    """The text that they add up to, each at its offset."""
    at = 0
    for delta in deltas:
        if isinstance(delta, TextDelta):
            assert delta.at == at
            at += len(delta.text)
    return "".join(d.text for d in deltas if isinstance(d, TextDelta))


class Starred:
    """A text filter: ``*`` becomes a mark."""

    def feed(self, item: str | Mark, /) -> list[str | Mark]:
        if not isinstance(item, str):
            return [item]
        out: list[str | Mark] = []
        for place, piece in enumerate(item.split("*")):
            out += [Mark(kind="star", raw="*")] if place else []
            out += [piece] if piece else []
        return out

    def close(self) -> list[str | Mark]:
        return []


@on_output
async def picky(turn: Turn, answer: Answer) -> Allow[Answer] | Revise:
    """Wants no sevens."""
    return Revise("no sevens") if "7" in answer.text else Allow()


STARS = Named("stars", Hooks(on_text=lambda _: Starred()))
TURNS: Mapping[str, tuple[list[Any], list[Any]]] = {
    "plain": (["Hello."], []),
    "pieces": ([["He", "l", "lo."]], []),
    "tools": ([[call("look"), call("pay")], ["Do", "ne."]], []),
    "words before a call": ([["Let me see. ", call("look")], "Eighty."], []),
    "marks": ([["a*b", "*", "c"]], [STARS]),
    "revised": (["It is 7.", "It is eight."], [picky]),
    "reasoning": ([reply(ThinkingChunk("hm"), TextChunk("Yes."))], []),
    "paused": ([["One moment. ", call("ask")]], [approve("ask")]),
}


def agent_of(name: str) -> tuple[Agent[Any, str], list[Any]]:
    """An agent with its script."""
    script, features = TURNS[name]
    tools = [tool("look", read_only=True), tool("pay"), tool("ask")]
    return Agent(ScriptedModel(*script), tools=tools, features=features), script


@pytest.mark.parametrize("name", TURNS)
async def test_a_turn_is_the_drained_stream(name: str) -> None:
    """Results, entries and sessions are equal, whoever reads along."""
    alone, _ = agent_of(name)
    read, _ = agent_of(name)
    plain = await turn(alone, "hi", session="s")
    reading = stream(read, "hi", session="s")
    await drained(reading)
    assert await reading.result() == plain


@pytest.mark.parametrize("name", [n for n in TURNS if n not in {"paused", "words before a call"}])
async def test_deltas_add_up_to_the_text(name: str) -> None:
    """Nothing streamed is taken back, nothing said is missing, and offsets count it."""
    agent, _ = agent_of(name)
    reading = stream(agent)
    deltas = await drained(reading)
    assert words(deltas) == (await reading.result()).text


async def test_words_before_a_call_are_streamed_before_it() -> None:
    """A reader sees them, then the call start and end, then the answer."""
    agent, _ = agent_of("words before a call")
    deltas = await drained(stream(agent))
    told = [d.text if isinstance(d, TextDelta) else getattr(d, "status", "") for d in deltas]
    assert told == ["Let me see. ", "asked", "returned", "Eighty."]


async def test_calls_are_shown_with_their_arguments_as_they_start_and_end() -> None:
    """In call order."""
    agent, _ = agent_of("tools")
    deltas = [d for d in await drained(stream(agent)) if isinstance(d, CallDelta)]
    assert [(d.name, d.status) for d in deltas] == [
        ("look", "asked"), ("look", "returned"), ("pay", "asked"), ("pay", "returned"),
    ]  # fmt: skip


async def test_marks_and_reasoning_are_deltas_of_their_own() -> None:
    """They are no text."""
    marks = await drained(stream(agent_of("marks")[0]))
    assert [d.at for d in marks if isinstance(d, MarkDelta)] == [1, 2]
    assert [type(d) for d in await drained(stream(agent_of("reasoning")[0]))] == [ReasoningDelta, TextDelta]


async def test_held_drafts_stream_once() -> None:
    """Where a rule may deny or revise, nothing is shown before it accepts; then the whole answer is."""
    agent, _ = agent_of("revised")
    deltas = await drained(stream(agent))
    assert deltas == [TextDelta("It is eight.", 0)]


async def test_a_refused_answer_streams_nothing() -> None:
    """The reader learns of it where the deltas would be."""

    @on_output
    async def refuses(turn: Turn, answer: Answer) -> Deny:
        return Deny("no")

    reading = stream(Agent(ScriptedModel("secret"), features=[refuses]))
    seen: list[Delta] = []
    with pytest.raises(AnswerRefused) as told:
        await into(seen, reading)
    assert seen == []
    with pytest.raises(AnswerRefused) as again:
        await reading.result()
    assert again.value.result is told.value.result is not None


async def test_a_slow_reader_does_not_hold_up_the_model() -> None:
    """The turn runs on while nobody reads; the reader then finds everything, in one batch."""
    model = Halting(("he", "l", "l", "o"))
    reading = stream(Agent(model))
    batches = reading.batches()
    first = await anext(batches)
    for _ in range(10):
        await asyncio.sleep(0)
    assert model.closed == ["done"]
    rest = [delta async for batch in batches for delta in batch]
    assert words([*first, *rest]) == "hello"


async def test_words_arrive_one_by_one() -> None:
    """A reader that keeps up sees each piece before the next one exists."""
    model = Halting(("he", WAIT, "llo"))
    seen: list[str] = []
    async for text in stream(Agent(model)).text:
        seen.append(text)
        if text == "he":
            await until(model.waiting)
            assert model.closed == []
            model.gate.set()
    assert seen == ["he", "llo"]


async def test_a_stream_has_one_reader() -> None:
    """A second one is refused, during and after; the first goes on."""
    model = Halting(("he", WAIT, "llo"))
    reading = stream(Agent(model))
    first = aiter(reading)
    await anext(first)
    with pytest.raises(UsageError, match="one reader"):
        await drained(reading)
    model.gate.set()
    assert [d async for d in first] == [TextDelta("llo", 2)]
    with pytest.raises(UsageError, match="one reader"):
        await drained(reading)


async def test_a_result_may_be_awaited_by_many() -> None:
    """Beside the one reader, and without any; all get the same."""
    reading = stream(Agent(ScriptedModel(["he", "llo"])))
    results = await asyncio.gather(*(reading.result() for _ in range(5)))
    assert {id(r) for r in results} == {id(results[0])}
    assert results[0].text == "hello"


async def failing(reading: TurnStream[Any]) -> tuple[list[Delta], ModelError]:
    """What was seen before the model failed, and how it did."""
    seen: list[Delta] = []
    with pytest.raises(ModelError) as told:
        await into(seen, reading)
    return seen, told.value


async def test_a_model_that_fails_after_words_were_shown() -> None:
    """What was shown is kept, marked; the input is known; the error carries the result."""
    agent = Agent(ScriptedModel(["It costs ", raises("network")], "Eighty."))
    seen, error = await failing(stream(agent, Said("price?", key="k1"), session="s"))
    assert (words(seen), error.result is not None) == ("It costs ", True)
    result: Result = error.result  # type: ignore[assignment]  # it is one of this agent
    assert (result.status, kinds(result)[-1]) == ("failed", "turn.failed")
    assert result.session is not None
    last = result.session.conversation.messages[-1]
    assert (getattr(last, "text", ""), getattr(last, "interrupted", "")) == ("It costs ", "failed")
    again = await turn(agent, Said("price?", key="k1"), session=result.session)
    assert again.status == "ignored"
    checked(agent, result)


@pytest.mark.parametrize("shown", [False, True])
async def test_a_model_that_fails_before_anything_was_shown(shown: bool) -> None:
    """Nothing is stored, streamed or not: the same input can be taken again, and is answered."""
    agent = Agent(ScriptedModel(raises("overload"), "Eighty."))
    said = Said("price?", key="k1")
    if shown:
        seen, error = await failing(stream(agent, said, session="s"))
        assert seen == []
    else:
        with pytest.raises(ModelError) as told:
            await turn(agent, said, session="s")
        error = told.value
    assert (error.kind, error.result) == ("overload", None)
    assert (await turn(agent, said, session="s")).text == "Eighty."


async def test_a_mark_alone_was_shown_too() -> None:
    """A sticker that people saw before the model failed is not forgotten."""
    agent = Agent(ScriptedModel(["*", raises("network")]), features=[STARS])
    seen, error = await failing(stream(agent))
    assert ([type(d) for d in seen], error.result is not None) == ([MarkDelta], True)


async def test_without_a_reader_no_word_was_shown() -> None:
    """A plain turn whose model fails in mid-stream leaves nothing behind."""
    agent = Agent(ScriptedModel(["It costs ", raises("network")], "Eighty."))
    with pytest.raises(ModelError) as told:
        await turn(agent, Said("price?", key="k1"), session="s")
    assert told.value.result is None


async def test_a_failed_turn_keeps_its_tools_results_for_the_next() -> None:
    """A refused answer after a tool ran: the round stays in the conversation, its data does not land."""

    @on_output
    async def refuses(turn: Turn, answer: Answer) -> Deny:
        return Deny("no")

    def look(args: object, ctx: Any) -> str:
        ctx.set({"seen": True})
        return "ok"

    agent = Agent(ScriptedModel([call("look")], "secret"), tools=[tool("look", look)], features=[refuses])
    with pytest.raises(AnswerRefused) as told:
        await turn(agent, session="s")
    result: Result = told.value.result  # type: ignore[assignment]  # it is one of this agent
    assert (result.status, result.messages, result.llm_calls) == ("refused", (), 2)
    assert result.session is not None
    last = result.session.conversation.messages[-1]
    assert [c.status for r in getattr(last, "rounds", ()) for c in r.calls] == ["returned"]
    assert result.session.data == {}
    checked(agent, result)


async def test_equal_turns_are_equal_values() -> None:
    """With the clock and names under control a turn is reproducible to the last entry."""
    results = [await turn(agent_of("tools")[0], session="s", effects=FakeEffects()) for _ in range(2)]
    assert results[0] == results[1]
    assert replace(results[0], text="x") != results[1]
