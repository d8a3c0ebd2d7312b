"""Listening: a model's chunks become a round, and deltas for whoever reads along (architecture §5, §11)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from msgspec import Raw

from onrecord.agent import Agent
from onrecord.conversation.content import CallRef, Citation, Refusal, Text, Thinking
from onrecord.conversation.messages import Round
from onrecord.conversation.outgoing import CallDelta, CitationDelta, ReasoningDelta, SearchDelta, TextDelta
from onrecord.errors import ModelError, UsageError
from onrecord.models.chunks import (
    Attempted,
    CitationChunk,
    Finished,
    NativeItem,
    SearchChunk,
    TextChunk,
    ThinkingChunk,
)
from onrecord.models.model import ModelCard
from onrecord.models.request import ProjectionIssue, Request, Wire
from onrecord.record.kinds import ModelAttempted, ModelReplied, ModelRequested
from onrecord.testing import FakeEffects, ScriptedModel, call, raises, reply
from tests.turn.acting import bodies, kinds, last_answer, rounds_of, tool, turn

pytestmark = pytest.mark.unit

CITED = Citation(url="https://example.org", title="A page", start=0, stop=3)


async def read_live(*answers: Any, **given: Any) -> tuple[list[Any], Any]:
    """The deltas of a turn, and its result."""
    agent: Agent[Any, Any] = Agent(ScriptedModel(*answers), **given)
    stream = agent.turn_stream("hi", effects=FakeEffects())
    return [delta async for delta in stream], await stream.result()


def replied(result: Any) -> Round:
    """The first raw reply on the record."""
    return bodies(result, ModelReplied)[0].round


# ---- content ---------------------------------------------------------------------------------------------------------


async def test_content_keeps_the_providers_order() -> None:
    """Neighbouring pieces of one kind are one part; calls stand where they came."""
    chunks = (
        ThinkingChunk("let "), ThinkingChunk("me"), TextChunk("I "), TextChunk("look."), call("lookup", n=1),
        TextChunk("And"), call("lookup", n=2), TextChunk("no", refusal=True),
    )  # fmt: skip
    _, result = await read_live(reply(*chunks), "done", tools=[tool()])
    made = replied(result)
    assert made.content == (
        Thinking("let me"), Text("I look."), CallRef(f"{made.id}/c0"), Text("And"), CallRef(f"{made.id}/c1"),
        Refusal("no"),
    )  # fmt: skip
    assert made.text == "I look.Andno"
    assert [(c.id, c.args) for c in made.calls] == [(f"{made.id}/c0", {"n": 1}), (f"{made.id}/c1", {"n": 2})]
    assert made.id == f"{result.entries[0].turn}/answer/r0"


async def test_a_reply_without_anything_is_an_empty_round() -> None:
    """It says nothing."""
    _, result = await read_live(reply())
    assert replied(result).content == ()
    assert (result.status, result.messages) == ("silent", ())


async def test_use_says_which_model_answered_at_what_cost_and_how_it_ended() -> None:
    """The latency is measured by the turn's clock."""
    effects = FakeEffects()

    def slow(request: Request) -> Any:
        effects.advance(seconds=1.5)
        return reply("x", finish="length")

    result = await turn(Agent(ScriptedModel(slow)), effects=effects)
    use = replied(result).use
    assert use is not None
    assert (use.provider, use.model, use.latency_ms, use.finish) == ("scripted", "script", 1500, "length")


async def test_a_stream_that_ends_without_a_word_about_it_is_unknown() -> None:
    """Nobody makes up a finish."""

    class Abrupt(ScriptedModel):
        async def stream(self, request: Request, /) -> AsyncGenerator[Any, None]:
            yield TextChunk("cut")

    result = await turn(Agent(Abrupt()))
    use = replied(result).use
    assert use is not None
    assert (use.finish, use.usage, result.text) == ("unknown", None, "cut")


async def test_native_items_are_kept_verbatim_for_the_same_scope() -> None:
    """With what of them has no portable form."""
    items = (NativeItem(raw=Raw(b'{"a": 1}')), NativeItem(raw=Raw(b'{"b":2}'), lost="encrypted reasoning"))
    _, result = await read_live(reply(*items, "x"))
    (kept,) = rounds_of(result)
    assert kept.continuation is not None
    assert [bytes(raw) for raw in kept.continuation.items] == [b'{"a": 1}', b'{"b":2}']
    assert kept.continuation.protocol == "scripted"
    assert kept.lost == ("encrypted reasoning",)
    (plain,) = rounds_of((await read_live("x"))[1])
    assert plain.continuation is None


async def test_citations_belong_to_the_text() -> None:
    """And reach a live reader as they come."""
    deltas, result = await read_live(reply("abc", CitationChunk((CITED,))))
    assert replied(result).content == (Text("abc", citations=(CITED,)),)
    assert deltas == [TextDelta("abc", 0), CitationDelta((CITED,))]


@pytest.mark.parametrize(
    ("start", "stop", "first", "last"),
    [
        (0, 3, [(0, 3)], []),  # in the first text
        (3, 6, [], [(0, 3)]),  # in the second, counted from where it begins
        (1, 5, [(1, 3)], [(0, 2)]),  # cut where the texts meet
        (0, 0, [], [(0, 0)]),  # about the reply as a whole
        (90, 99, [], [(0, 0)]),  # about nothing that is here
    ],
)
async def test_sources_stand_at_the_text_that_they_are_about(
    start: int, stop: int, first: list[tuple[int, int]], last: list[tuple[int, int]]
) -> None:
    """Places come counted over the whole reply and are kept within the part that carries them."""
    source = Citation(url="https://example.org", start=start, stop=stop)
    chunks = (TextChunk("one"), ThinkingChunk("hm"), TextChunk("two"), CitationChunk((source,)))
    _, result = await read_live(reply(*chunks))
    one, _, two = replied(result).content
    assert isinstance(one, Text)
    assert isinstance(two, Text)
    assert [(held.start, held.stop) for held in one.citations] == first
    assert [(held.start, held.stop) for held in two.citations] == last


# ---- deltas ----------------------------------------------------------------------------------------------------------


async def test_a_live_reader_sees_words_reasoning_searches_and_calls() -> None:
    """Offsets count the text that this turn streamed so far, over its rounds."""
    first = reply(ThinkingChunk("hm"), "one", SearchChunk(id="s", status="searching"), call("lookup", n=1))
    deltas, result = await read_live(first, ["two", "three"], tools=[tool()])
    made = replied(result).calls[0].id
    assert deltas == [
        ReasoningDelta("hm"), TextDelta("one", 0), SearchDelta(id="s", status="searching"),
        CallDelta(id=made, name="lookup", status="asked", args={"n": 1}),
        CallDelta(id=made, name="lookup", status="returned", args={"n": 1}),
        TextDelta("two", 3), TextDelta("three", 6),
    ]  # fmt: skip


async def test_held_drafts_hold_reasoning_searches_and_citations_too() -> None:
    """They are part of an answer that nobody accepted yet."""
    from onrecord.turn.moments import ALLOW, Hooks
    from tests.turn.acting import Named

    async def accept(*_: Any) -> Any:
        return ALLOW

    chunks = (ThinkingChunk("hm"), "abc", SearchChunk(id="s", status="completed"), CitationChunk((CITED,)))
    held = Named("accept", Hooks(on_output=accept, holds_drafts=True))
    deltas, _ = await read_live(reply(*chunks), features=[held])
    assert deltas == [TextDelta("abc", 0)]


async def test_nobody_reading_means_no_deltas_and_the_same_record() -> None:
    """The model is asked in one way only."""
    answers: list[Any] = [reply(ThinkingChunk("hm"), "one", call("lookup")), "two"]
    agent: Agent[Any, Any] = Agent(ScriptedModel(*answers), tools=[tool()])
    quiet = await turn(agent, session="s")
    loud = (
        await Agent(ScriptedModel(*answers), tools=[tool()])
        .turn_stream("hi", session="s", effects=FakeEffects())
        .result()
    )
    assert quiet.entries == loud.entries


# ---- attempts and failures -------------------------------------------------------------------------------------------


async def test_attempts_are_on_the_record() -> None:
    """Each with its error and its wait; what they cost is counted once."""
    _, result = await read_live(reply(Attempted(attempt=1, error="overload", status=503, wait_s=3.0), "x"))
    (tried,) = bodies(result, ModelAttempted)
    assert (tried.attempt, tried.error, tried.status, tried.wait_s) == (1, "overload", 503, 3.0)
    assert kinds(result).index("model.attempted") == kinds(result).index("model.requested") + 1
    assert result.llm_calls == 1


async def test_a_model_that_raises_anything_raises_a_model_error() -> None:
    """Named by its class, without its words; the cause is kept for whoever debugs."""
    with pytest.raises(ModelError) as failed:
        await turn(Agent(ScriptedModel(ValueError("canary"))))
    assert str(failed.value) == "model 'scripted:script' raised ValueError"
    assert (failed.value.kind, failed.value.provider) == ("unknown", "scripted")
    assert isinstance(failed.value.__cause__, ValueError)


async def test_a_model_error_is_passed_on_as_it_is() -> None:
    """With everything the provider said."""
    with pytest.raises(ModelError) as failed:
        await turn(Agent(ScriptedModel(raises("rate", retry_after=7, status=429))))
    assert (failed.value.kind, failed.value.retry_after, failed.value.status) == ("rate", 7, 429)
    assert failed.value.result is None


async def test_a_failure_in_the_middle_of_a_shown_answer_is_kept_as_failed() -> None:
    """A person read the beginning: the conversation says so, and the error holds the turn."""
    agent: Agent[Any, Any] = Agent(ScriptedModel(["par", raises("network")], "again"))
    stream = agent.turn_stream("hi", effects=FakeEffects())
    with pytest.raises(ModelError) as failed:
        await stream.result()
    result = failed.value.result
    assert result is not None
    assert (result.status, result.messages, kinds(result)[-1]) == ("failed", (), "turn.failed")
    cut = last_answer(result)
    assert (cut.text, cut.interrupted) == ("par", "failed")


async def test_the_same_failure_with_nobody_reading_keeps_nothing() -> None:
    """Nothing was shown: the same input can be taken again."""
    with pytest.raises(ModelError) as failed:
        await turn(Agent(ScriptedModel(["par", raises("network")])))
    assert failed.value.result is None


async def test_a_cancelled_turn_is_cancelled() -> None:
    """The model's stream is closed, and no error hides it."""
    started, closed = asyncio.Event(), list[str]()

    class Slow(ScriptedModel):
        async def stream(self, request: Request, /) -> AsyncGenerator[Any, None]:
            try:
                yield TextChunk("x")
                started.set()
                await asyncio.Event().wait()
            finally:
                closed.append("closed")

    task = asyncio.ensure_future(turn(Agent(Slow())))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert closed == ["closed"]


async def test_what_a_wire_cannot_carry_is_refused_before_anything_is_sent() -> None:
    """Every problem is named once."""

    class Blind(ScriptedModel):
        def wire(self, request: Request, /) -> Wire:
            issues = (ProjectionIssue(unit=0, what="an image"), ProjectionIssue(unit=0, what="an image"))
            return Wire(body=b"{}", issues=(*issues, ProjectionIssue(unit=1, what="a file")))

    model = Blind("x")
    with pytest.raises(ModelError, match="cannot be sent this request") as failed:
        await turn(Agent(model))
    assert str(failed.value).endswith(": an image; a file")
    assert (failed.value.kind, model.requests) == ("invalid", [])


async def test_requests_and_replies_name_the_model_that_was_asked() -> None:
    """By the name that agents use."""
    card = ModelCard(provider="acme", model="m1", protocol="scripted")
    _, result = await read_live("x", features=[])
    assert [b.model for b in bodies(result, ModelRequested)] == ["scripted:script"]
    result = await turn(Agent(ScriptedModel("x", card=card)))
    assert [b.model for b in bodies(result, ModelRequested)] == ["acme:m1"]


async def test_a_stream_has_one_reader() -> None:
    """A second one would see half of it."""
    stream = Agent(ScriptedModel(["a", "b"])).turn_stream("hi", effects=FakeEffects())
    assert [text async for text in stream.text] == ["a", "b"]
    with pytest.raises(UsageError, match="a stream has one reader"):
        _ = [text async for text in stream.text]


async def test_the_result_can_be_asked_for_without_reading() -> None:
    """The deltas are dropped; asking again gives the same."""
    stream = Agent(ScriptedModel("a")).turn_stream("hi", effects=FakeEffects())
    first = await stream.result()
    assert first is await stream.result()
    assert first.text == "a"


ODD: Any = 5


@pytest.mark.parametrize(
    "chunk",
    [
        Finished(model=ODD),
        Finished(lost=ODD),
        Attempted(attempt=1, error=ODD),
        CitationChunk(citations=ODD),
        NativeItem(raw=Raw(b"{"), lost=""),
        NativeItem(raw=Raw(b"{}"), lost=ODD),
    ],
    ids=lambda chunk: type(chunk).__name__,
)
async def test_a_chunk_that_could_not_be_read_again_fails_the_call(chunk: Any) -> None:
    """It is the model's failure, told by the chunk's name, and nothing of it is kept."""
    with pytest.raises(ModelError, match=f"gave a {type(chunk).__name__} whose fields"):
        await turn(Agent(ScriptedModel(reply("x", chunk))))
