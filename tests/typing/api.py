"""The public API as users write it, for type checkers alone: the gate ``types`` reads this file, nothing runs it.

What a checker must infer is said with `assert_type`; what it must refuse carries an ignore of exactly that error, and
an ignore that is not needed is an error too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, assert_type

from onrecord import (
    Agent,
    Allow,
    Answer,
    Answered,
    Ask,
    AskField,
    Conversation,
    Deny,
    Happened,
    Image,
    Instruction,
    ModelError,
    OutputInvalid,
    Returned,
    Revise,
    Said,
    Session,
    SessionKey,
    Text,
    TextDelta,
    Tool,
    Toolbox,
    ToolCall,
    ToolContext,
    ToolResult,
    Turn,
    TurnError,
    TurnResult,
    Typed,
    Watch,
    after_tool,
    approved,
    before_tool,
    declined,
    on_input,
    on_output,
    preset,
    tool,
)
from onrecord.conversation.inputs import Input, Question
from onrecord.conversation.usage import Usage
from onrecord.record.entry import Entry
from onrecord.session.memory_store import MemoryStore
from onrecord.session.store import Store
from onrecord.stores.sqlite import SqliteStore
from onrecord.testing import FakeEffects, ScriptedModel, call, raises, reply


@dataclass
class Booking:
    """An output type."""

    city: str
    nights: int


@dataclass
class Shop:
    """A context type."""

    currency: str


@tool
def price(city: str, nights: int = 1) -> dict[str, int]:
    """Price of a stay in a city."""
    return {"total": nights}


@tool(id="book", destructive=True)
async def book_room(city: str, ctx: ToolContext[Shop]) -> ToolResult:
    """Books a room."""
    assert_type(ctx.context, Shop)
    assert_type(ctx.now, datetime)
    answer = await ctx.ask(Ask("Shall I?", fields=(AskField("room", schema={"type": "string"}),)))
    assert_type(answer, Answered)
    ctx.set({"city": city})
    made = await ctx.once("book", int, _reserve)
    assert_type(made, int)
    return ToolResult({"ok": made}, data={"city": city})


async def _reserve() -> int:
    return 1


def by_hand(args: Mapping[str, Any], ctx: ToolContext[Shop]) -> str:
    """A handler for a `Tool` written by hand."""
    return f"{args['city']} in {ctx.context.currency}"


assert_type(price, Tool)
box = Toolbox()
assert_type(box.tool(price), Tool)
hand = Tool("hand", by_hand, "By hand.", parameters={"type": "object"}, read_only=lambda args: "city" in args)


@on_input
async def polite(turn: Turn, input: Input) -> Allow[Input] | Deny:
    """A rule over what comes in."""
    return Deny("empty") if isinstance(input, Said) and not input.content else Allow()


@before_tool
async def allowed(turn: Turn, asked: ToolCall) -> Allow[Mapping[str, Any]] | Deny | Ask:
    """A rule over a call."""
    if asked.name == "book":
        return Ask("May it?")
    return Allow({**asked.args, "nights": 2}, "two nights at least")


@after_tool
async def short(turn: Turn, returned: Returned) -> Allow[Returned] | Deny:
    """A rule over a result."""
    return Allow()


@on_output
async def brief(turn: Turn, answer: Answer) -> Allow[Answer] | Deny | Revise:
    """A rule over an answer."""
    return Revise("shorter, please") if len(answer.text) > 100 else Allow()


@on_output(revisions=2, holds_drafts=True)
async def brief_twice(turn: Turn, answer: Answer) -> Allow[Answer] | Deny | Revise:
    """The same, with settings."""
    return Allow()


def seen(entry: Entry) -> None:
    """A watcher."""


plain = Agent("offline", instructions="You help.", tools=[price, hand, *box], rounds=3)
assert_type(plain, Agent[object, str])
typed = Agent("offline", output=Booking, context=Shop, features=[polite, allowed, short, brief, brief_twice])
assert_type(typed, Agent[Shop, Booking])
chosen = Agent(lambda _: preset("offline", temperature=0.1), instructions=lambda turn: f"It is {turn.now}.")
fallen = Agent(
    "offline", output=Booking,
    features=[Typed(retries=2, canned=Booking("Lund", 1)), Instruction("Be brief."), Watch(seen)],
)  # fmt: skip
counts = Agent("offline", output=dict[str, int])
assert_type(counts, Agent[object, dict[str, int]])


async def one_turn(session: Session | None) -> None:
    """A turn and everything that is read of it."""
    result = await typed.turn("book a room", session=session or SessionKey("ana", tenant="hotel"), context=Shop("EUR"))
    assert_type(result, TurnResult[Booking])
    assert_type(result.output, Booking)
    assert_type(result.text, str)
    assert_type(result.question, Question | None)
    assert_type(result.usage, Usage | None)
    assert_type(result.session, Session | None)
    assert_type(result.entries, tuple[Entry, ...])
    if result.question is not None and result.session is not None:
        await typed.turn(approved(result.question, by="ana"), session=result.session, context=Shop("EUR"))
        await typed.turn(declined(result.question, by="ana", note="no"), session=result.session, context=Shop("EUR"))
    await plain.turn(Said((Text("what is this?"), Image(data=b"...")), key="1"))
    await plain.turn(Happened("paid", key="2", payload={"amount": 3}))
    await plain.turn("hi", history=[{"role": "user", "content": "earlier"}])
    await plain.turn("hi", history=Conversation(), effects=FakeEffects())


async def streaming() -> None:
    """Streams, read in each way."""
    stream = typed.turn_stream("hi", context=Shop("EUR"))
    async with stream:
        async for delta in stream:
            if isinstance(delta, TextDelta):
                assert_type(delta.text, str)
    async for text in plain.turn_stream("hi").text:
        assert_type(text, str)
    assert_type(await stream.result(), TurnResult[Booking])


def without_a_loop() -> None:
    """The same for code without an event loop."""
    assert_type(typed.turn_sync("hi", context=Shop("EUR")), TurnResult[Booking])
    for piece in plain.turn_stream_sync("hi"):
        assert_type(piece, str | TurnResult[str])


async def stored(store: Store) -> None:
    """Stores are one port."""
    session = await store.load("ana")
    assert_type(session, Session | None)
    result = await plain.turn("hi", session=session or "ana")
    assert_type(await store.commit(result.change()), Session)
    async for entry in store.entries("ana"):
        assert_type(entry, Entry)


async def both_stores() -> None:
    """Both fill it."""
    async with MemoryStore() as memory, SqliteStore("talk.db", synchronous="full") as file:
        await stored(memory)
        await stored(file)


async def failing() -> None:
    """What is raised, and what it tells."""
    try:
        (await typed.turn("hi")).output.city.upper()
    except ModelError as error:
        assert_type(error.retry_after, float | None)
        assert_type(error.hint, str)
    except OutputInvalid as error:
        assert_type(error.problem, str)
    except TurnError as error:
        assert_type(error.result, TurnResult[object] | None)


def tested() -> Agent[object, str]:
    """An agent under test."""
    model = ScriptedModel(
        "one", [call("price", city="Lund")], reply("two", usage=Usage(input_tokens=1)), raises("rate")
    )
    return Agent(model, tools=[price])


async def refused() -> None:
    """What a checker must not let pass."""
    Agent(5)  # type: ignore[arg-type]  # neither a name nor a model
    Agent("offline", tools=[len])  # type: ignore[list-item]  # a function that is no tool
    Agent("offline", rounds="3")  # type: ignore[arg-type]  # a text is no number of rounds
    await plain.turn(b"hi")  # type: ignore[arg-type]  # bytes are no message
    await typed.turn("hi", context="EUR")  # type: ignore[arg-type]  # not the declared context
    Deny()  # type: ignore[call-arg]  # a denial has a reason
    Ask("?", on_message="later")  # type: ignore[arg-type]  # not one of the three
    (await typed.turn("hi")).output.country  # type: ignore[attr-defined]  # noqa: B018 - not in the output type
