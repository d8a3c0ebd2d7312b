"""What every model promises, as tests: subclass the suites and say how to make a model.

```python
class TestMyModel(ModelConformance, ModelCallsTools, ModelFails):
    @pytest.fixture
    def make_model(self):
        return lambda: MyModel(...)

    @pytest.fixture
    def make_caller(self):
        return lambda name, args: MyModel(...)  # its next reply calls this tool

    @pytest.fixture
    def make_failing(self):
        return lambda: MyModel(...)  # its next reply fails
```

`ModelConformance` needs ``make_model``: a function that gives a model which answers every request in words.
`ModelCallsTools` and `ModelFails` are for models that a test can make call a tool, or fail. The tests are coroutines:
they need pytest-asyncio.
"""

# ruff: noqa: S101  assert is the language of tests

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import aclosing
from typing import Any, TypeAlias

import pytest

from onrecord.agent import Agent
from onrecord.conversation.content import Text
from onrecord.conversation.conversation import Conversation
from onrecord.conversation.messages import AssistantMessage, Message, Round, ToolCall, UserMessage
from onrecord.conversation.usage import FINISHES
from onrecord.errors import ModelError
from onrecord.jsonio import Json, loads
from onrecord.models.chunks import CallChunk, Chunk, Finished, TextChunk, ThinkingChunk
from onrecord.models.model import Model, scope_of
from onrecord.models.request import Offer, Piece, Request, Settings, Span, ToolSpec, View
from onrecord.testing.fakes import FakeEffects
from onrecord.tools.tool import Tool

__all__ = ("MakeCaller", "MakeModel", "ModelCallsTools", "ModelConformance", "ModelFails", "request")

MakeModel: TypeAlias = Callable[[], Model]
MakeCaller: TypeAlias = Callable[[str, Mapping[str, Json]], Model]

WEATHER = Tool(
    "weather", lambda *_: "sunny", "Tells the weather of a city.",
    parameters={"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)  # fmt: skip


def request(model: Model, *messages: Message, tools: tuple[Tool, ...] = (), **fields: Any) -> Request:
    """A request of a speaker over these messages, as an agent makes it."""
    conversation = Conversation.of(messages or [said("What is a room?")])
    units = len(conversation.units)
    offers = tuple(
        Offer(tool=t, spec=ToolSpec(name=t.id, description=t.description, schema=t.parameters)) for t in tools
    )
    given: dict[str, Any] = {
        "purpose": "speak", "where": "main/r0", "pieces": (Piece(source="instructions", text="Be kind."),),
        "conversation": conversation, "own": units, "view": View(spans=(Span(0, units),)), "model": model,
        "offers": offers, "scope": scope_of(model.card, "s"),
    }  # fmt: skip
    return Request(**{**given, **fields})


def said(text: str, id: str = "u1") -> UserMessage:
    """A message of a person."""
    return UserMessage(id=id, content=(Text(text),))


def called(name: str = "weather", text: str = "sunny") -> AssistantMessage:
    """An answer that called a tool and got its result."""
    call = ToolCall(
        id="r0/c0", wire_id="call_1", name=name, raw_args='{"city":"Lund"}', args={"city": "Lund"},
        result=(Text(text),), status="returned",
    )  # fmt: skip
    rounds = (Round(id="r0", calls=(call,)), Round(id="r1", content=(Text("It is sunny."),)))
    return AssistantMessage(id="a1", rounds=rounds, shown=(Text("It is sunny."),))


async def chunks_of(model: Model, asked: Request) -> list[Chunk]:
    """The whole reply."""
    async with aclosing(model.stream(asked)) as chunks:
        return [chunk async for chunk in chunks]


@pytest.mark.asyncio
class ModelConformance:
    """A model that answers in words: its card, its bytes, its stream, and turns with it."""

    async def test_a_card_says_who_the_model_is(self, make_model: MakeModel) -> None:
        """Provider, model and protocol; the same each time, and no address that holds a key."""
        model = make_model()
        card = model.card
        assert card.provider
        assert card.model
        assert card.protocol
        assert card.name == f"{card.provider}:{card.model}"
        assert model.card == card
        assert "@" not in (card.base_url or "")

    async def test_equal_requests_have_equal_bytes(self, make_model: MakeModel) -> None:
        """`wire` is pure: asked twice, by two models, over the same conversation, it gives the same."""
        one, other = make_model(), make_model()
        asked = request(one, said("hi"), called(), said("and now?", "u2"), tools=(WEATHER,))
        first = one.wire(asked)
        again = one.wire(asked)
        assert isinstance(first.body, bytes)
        assert first.body == again.body
        assert other.wire(request(other, said("hi"), called(), said("and now?", "u2"), tools=(WEATHER,))).body == (
            first.body
        )

    async def test_plain_words_can_always_be_sent(self, make_model: MakeModel) -> None:
        """Text, earlier calls with their results, and settings raise no issue."""
        model = make_model()
        asked = request(
            model, said("hi, 部屋 🛏"), called(), said("and now?", "u2"), tools=(WEATHER,),
            settings=Settings(temperature=0.2, max_tokens=50),
        )  # fmt: skip
        wire = model.wire(asked)
        assert wire.issues == ()
        assert 0 <= (wire.stable_until or 0) <= len(asked.conversation.units)

    async def test_what_is_said_is_sent(self, make_model: MakeModel) -> None:
        """Words of the person, of the prompt and of results are in the bytes; another word gives other bytes."""
        model = make_model()
        body = model.wire(request(model, said("canary-said"), called(text="canary-result"))).body
        for word in (b"canary-said", b"canary-result", b"Be kind."):
            assert word in body
        assert model.wire(request(model, said("canary-other"), called(text="canary-result"))).body != body

    async def test_a_reply_is_chunks_and_one_end(self, make_model: MakeModel) -> None:
        """Words in pieces, and last exactly one `Finished` that says how it ended."""
        model = make_model()
        chunks = await chunks_of(model, request(model))
        assert all(isinstance(chunk, Chunk) for chunk in chunks)
        assert "".join(c.text for c in chunks if isinstance(c, TextChunk)).strip()
        ends = [chunk for chunk in chunks if isinstance(chunk, Finished)]
        assert len(ends) == 1
        assert chunks[-1] is ends[0]
        assert ends[0].finish in FINISHES

    async def test_no_words_are_empty_pieces(self, make_model: MakeModel) -> None:
        """A reader is never woken for nothing."""
        model = make_model()
        chunks = await chunks_of(model, request(model))
        assert all(chunk.text for chunk in chunks if isinstance(chunk, (TextChunk, ThinkingChunk)))

    async def test_a_stream_may_be_closed_at_once(self, make_model: MakeModel) -> None:
        """Before its first chunk and after it; the model answers the next request all the same."""
        model = make_model()
        await model.stream(request(model)).aclose()
        chunks = model.stream(request(model))
        await anext(chunks)
        await chunks.aclose()
        assert await chunks_of(model, request(model))

    async def test_a_cancelled_reader_is_cancelled(self, make_model: MakeModel) -> None:
        """`CancelledError` is never turned into anything else."""
        model = make_model()
        task = asyncio.ensure_future(chunks_of(model, request(model)))
        await asyncio.sleep(0)
        task.cancel()
        ended = (await asyncio.gather(task, return_exceptions=True))[0]
        assert isinstance(ended, (asyncio.CancelledError, list))

    async def test_requests_run_side_by_side(self, make_model: MakeModel) -> None:
        """One model serves many turns at once, and mixes nothing up."""
        model = make_model()
        replies = await asyncio.gather(*(chunks_of(model, request(model)) for _ in range(5)))
        assert all(isinstance(reply[-1], Finished) for reply in replies)

    async def test_an_agent_takes_turns_with_it(self, make_model: MakeModel) -> None:
        """Two turns of a session, the second read along: what streams is what is said."""
        agent = Agent(make_model(), instructions="Be kind.")
        first = await agent.turn("What is a room?", session="s", effects=FakeEffects())
        assert first.status == "answered"
        assert first.text.strip()
        stream = agent.turn_stream("And a bed?", session=first.session, effects=FakeEffects())
        words = "".join([text async for text in stream.text])
        assert words == (await stream.result()).text


@pytest.mark.asyncio
class ModelCallsTools:
    """A model that can be made to call a tool: give a subclass the fixture ``make_caller``."""

    async def test_a_call_comes_whole(self, make_caller: MakeCaller) -> None:
        """Its name and its arguments as one JSON text, in one chunk, with a name of the wire's own."""
        model = make_caller("weather", {"city": "Lund"})
        chunks = await chunks_of(model, request(model, said("weather in Lund?"), tools=(WEATHER,)))
        (call,) = [chunk for chunk in chunks if isinstance(chunk, CallChunk)]
        assert (call.name, loads(call.raw_args)) == ("weather", {"city": "Lund"})
        assert call.wire_id
        end = chunks[-1]
        assert isinstance(end, Finished)
        assert end.finish == "calls"

    async def test_an_agent_runs_the_call(self, make_caller: MakeCaller) -> None:
        """The handler gets the arguments."""
        seen: list[Mapping[str, Json]] = []

        def weather(args: Mapping[str, Json], ctx: object) -> str:
            seen.append(args)
            return "sunny"

        tool = Tool("weather", weather, WEATHER.description, parameters=WEATHER.parameters)
        agent = Agent(make_caller("weather", {"city": "Lund"}), tools=[tool], rounds=1)
        await agent.turn("weather in Lund?", effects=FakeEffects())
        assert seen == [{"city": "Lund"}]

    async def test_without_tools_no_definition_is_sent(self, make_caller: MakeCaller) -> None:
        """What is not offered is not in the bytes."""
        model = make_caller("weather", {"city": "Lund"})
        assert b"weather" in model.wire(request(model, tools=(WEATHER,))).body
        assert b"weather" not in model.wire(request(model)).body


@pytest.mark.asyncio
class ModelFails:
    """A model that can be made to fail: give a subclass the fixture ``make_failing``."""

    async def test_a_failure_is_a_model_error(self, make_failing: MakeModel) -> None:
        """With its kind and the provider's name, and without a word of what was said."""
        model = make_failing()
        with pytest.raises(ModelError) as told:
            await chunks_of(model, request(model, said("canary-said")))
        assert told.value.kind
        assert told.value.code == f"model-{told.value.kind}"
        assert told.value.provider
        assert "canary-said" not in f"{told.value} {told.value.hint}"

    async def test_a_failed_turn_stores_nothing(self, make_failing: MakeModel) -> None:
        """The caller gets the error, and the same input can be taken again."""
        with pytest.raises(ModelError) as told:
            await Agent(make_failing()).turn("hi", session="s", effects=FakeEffects())
        assert told.value.result is None
