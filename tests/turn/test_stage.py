"""The stage: what a director can do, once per key, and what it gets back (architecture §6, Director and stage)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.conversation.inputs import Ask
from onrecord.conversation.outgoing import Wake
from onrecord.conversation.usage import Usage
from onrecord.errors import FeatureFailed, UsageError
from onrecord.governance.rules import after_tool, before_tool
from onrecord.models.request import Piece
from onrecord.record.kinds import (
    DataPatched,
    ModelRequested,
    RoundSettled,
    TextSaid,
)
from onrecord.testing import FakeEffects, ScriptedModel, call, reply
from onrecord.tools.tool import Permission, ToolContext, ToolResult, Validity
from onrecord.turn.director import Acted, Brief, Spoken, Stage
from onrecord.turn.moments import Allow, Deny, Hooks
from onrecord.turn.turn import Turn
from tests.turn.acting import Named, bodies, kinds, read, told, tool, turn
from tests.turn.directing import PLAIN, Directed, played, query

pytestmark = pytest.mark.unit

# ---- keys ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["speak", "judge", "say", "act"])
async def test_a_key_is_used_once_in_a_turn(verb: str) -> None:
    """Whatever the verb: keys name what is done."""

    async def script(turn: Turn, stage: Stage) -> None:
        await stage.say("first", key="k")
        verbs = {
            "speak": lambda: stage.speak(Brief(key="k")), "judge": lambda: stage.judge(query("k")),
            "say": lambda: stage.say("again", key="k"), "act": lambda: stage.act(tool(), {}, key="k"),
        }  # fmt: skip
        await verbs[verb]()  # type: ignore[no-untyped-call]

    with pytest.raises(UsageError, match="the verb key 'k' is used twice in one turn") as refused:
        await played(script)
    assert refused.value.code == "key-reused"


@pytest.mark.parametrize(
    ("wake", "told"),
    [
        (Wake(key="", at=datetime(2026, 9, 20, 12, tzinfo=UTC)), "a wake needs a key"),
        (Wake(key="w", at=datetime(2026, 9, 20, 12)), "the time of a wake has no UTC offset"),  # noqa: DTZ001 - on purpose
    ],
)
async def test_a_wake_that_no_store_could_keep_is_refused_where_it_is_armed(wake: Wake, told: str) -> None:
    """At the director's own line, and not by the commit."""

    async def script(turn: Turn, stage: Stage) -> None:
        stage.arm(wake)

    with pytest.raises(UsageError, match=told):
        await played(script)


async def test_messages_are_known_by_their_verb() -> None:
    """``{turn}/{key}``, or by the exact key that the director gives; the record has the same."""

    async def script(turn: Turn, stage: Stage) -> None:
        await stage.say("one", key="greeting")
        await stage.say("two", key="offer", message_key="hotel#k:offer:1")
        await stage.speak(Brief(key="answer"))
        await stage.speak(Brief(key="more", message_key="hotel#k:offer:1/2"))

    result = await played(script, "three", "four")
    of = result.entries[0].turn
    keys = [f"{of}/greeting", "hotel#k:offer:1", f"{of}/answer", "hotel#k:offer:1/2"]
    assert [m.key for m in result.messages] == [b.key for b in bodies(result, TextSaid)] == keys
    assert result.text == "one\n\ntwo\n\nthree\n\nfour"


# ---- speak -----------------------------------------------------------------------------------------------------------


async def test_speak_tells_what_it_came_to() -> None:
    """Text, value, data, rounds and usage."""
    seen: list[Spoken] = []

    async def script(turn: Turn, stage: Stage) -> None:
        seen.append(await stage.speak(Brief(key="answer", shape=PLAIN)))

    held = tool("book", lambda *_: ToolResult("ok", data={"code": 1}))
    await played(script, call("book"), "done", tools=[held])
    (spoken,) = seen
    assert (spoken.text, spoken.value, spoken.data, spoken.rounds, spoken.asked) == (
        "done",
        "done",
        {"code": 1},
        2,
        None,
    )


async def test_several_speakers_speak_one_after_another() -> None:
    """Each sees what the one before said; delays and tags ride on the message."""
    model = ScriptedModel("one", "two")

    async def script(turn: Turn, stage: Stage) -> None:
        await stage.speak(Brief(key="a", pieces=(Piece(source="brief", text="Be A."),)))
        await stage.speak(Brief(key="b", after_ms=500, about={"run_id": "r1"}))

    result = await turn(Agent(model, director=Directed(script)))
    assert [(m.text, m.after_ms, m.about) for m in result.messages] == [("one", 0, {}), ("two", 500, {"run_id": "r1"})]
    assert [read(r)["system"] for r in model.requests] == ["Be A.", ""]
    assert [m["content"] for m in read(model.requests[1])["messages"]] == ["hi", "one"]
    assert told(result) == ["hi", "one\n\ntwo"]


async def test_pieces_of_the_turn_may_carry_the_message() -> None:
    """Then the request names the unit that they stand for."""
    model = ScriptedModel("x")

    async def script(turn: Turn, stage: Stage) -> None:
        await stage.speak(
            Brief(key="a", carries_input=True, pieces=(Piece(source="b", text="They said: hi", place="turn"),))
        )

    await turn(Agent(model, director=Directed(script)))
    (request,) = model.requests
    assert (request.carries, request.own, read(request)["turn"]) == (0, 1, ["They said: hi"])


# ---- say -------------------------------------------------------------------------------------------------------------


async def test_a_said_line_is_a_message_no_model_wrote() -> None:
    """With its media, delay and tags; later requests show it like any answer."""
    model = ScriptedModel("done")

    async def script(turn: Turn, stage: Stage) -> None:
        await stage.say("Look:", key="pic", media="photo-1", after_ms=100, about={"step_id": "s"})
        await stage.speak(turn.spec.brief)

    result = await turn(Agent(model, director=Directed(script)))
    first = result.messages[0]
    assert (first.text, first.kind, first.media, first.after_ms) == ("Look:", "verbatim", "photo-1", 100)
    assert first.about == {"step_id": "s"}
    assert result.llm_calls == 1
    assert [m["content"] for m in read(model.requests[0])["messages"]] == ["hi", "Look:"]


async def test_a_blank_line_says_nothing_and_media_alone_do() -> None:
    """No empty message goes out."""

    async def script(turn: Turn, stage: Stage) -> None:
        await stage.say("  ", key="blank")
        await stage.say("", key="pic", media="photo-1")

    result = await played(script)
    assert [(m.text, m.media) for m in result.messages] == [("", "photo-1")]
    assert result.text == ""
    assert len(bodies(result, TextSaid)) == 1


# ---- act -------------------------------------------------------------------------------------------------------------


async def acted(held: Any, args: Any = None, **more: Any) -> tuple[Acted, Any]:
    """What one act came to, and the turn's result."""
    seen: list[Acted] = []

    async def script(turn: Turn, stage: Stage) -> None:
        seen.append(await stage.act(held, args or {}, key="do"))

    result = await played(script, **more)
    return seen[0], result


async def test_an_act_runs_a_tool_that_the_model_never_sees() -> None:
    """Its value comes back untouched, its data lands at once, and it is on the record like any call."""
    seen: list[Any] = []

    def handler(args: Any, ctx: ToolContext[Any]) -> ToolResult:
        seen.append((args, ctx.key))
        return ToolResult({"code": 7}, data={"code": 7})

    did, result = await acted(tool("book", handler), {"city": "Lund"})
    assert (did.value, did.error, did.call.status) == ({"code": 7}, None, "returned")
    assert seen[0][0] == {"city": "Lund"}
    assert seen[0][1].startswith(f"{result.entries[0].turn}/do/book:")
    assert result.session.data == {"code": 7}
    assert kinds(result) == [
        "turn.opened", "turn.input", "round.settled", "tool.started", "tool.returned", "data.patched", "turn.closed"
    ]  # fmt: skip
    assert [b.round.id for b in bodies(result, RoundSettled)] == [f"{result.entries[0].turn}/do/act0"]
    assert [m.text for m in result.session.conversation.messages] == ["hi"]


async def test_data_of_an_act_is_seen_by_what_follows() -> None:
    """The next verb of the same turn."""
    seen: list[Any] = []

    async def script(turn: Turn, stage: Stage) -> None:
        await stage.act(tool("a", lambda *_: ToolResult(data={"a": 1})), {}, key="one")
        await stage.act(tool("b", lambda _, ctx: seen.append(dict(ctx.data))), {}, key="two")

    result = await played(script)
    assert seen == [{"a": 1}]
    assert [b.patch for b in bodies(result, DataPatched)] == [{"a": 1}]


def failing(*_: object) -> None:
    """A handler that raises."""
    raise RuntimeError("sheet offline")


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"handler": failing}, '{"error":"sheet offline"}'),
        ({"validate_input": lambda *_: Validity(valid=False, error="no")}, '{"error":"Validation failed: no"}'),
        ({"check_permissions": lambda *_: Permission(allowed=False)}, '{"error":"Permission denied: not allowed"}'),
        ({"handler": lambda *_: ToolResult("half", status="failed")}, "half"),
    ],
)
async def test_an_act_that_fails_tells_how(fields: Any, error: str) -> None:
    """As an error of the result, never as an exception."""
    did, _ = await acted(tool("book", **fields))
    assert did.error == error


async def test_an_act_passes_the_same_rules() -> None:
    """Governance covers what a director does itself."""

    @before_tool
    async def never(turn: Turn, asked: Any) -> Any:
        return Deny("not now") if asked.name == "book" else Allow()

    @after_tool
    async def look(turn: Turn, returned: Any) -> Any:
        return Allow(why="looked")

    did, result = await acted(tool("book"), features=[never, look])
    assert (did.error, did.call.status) == ("not now", "denied")
    did, result = await acted(tool("fine"), features=[never, look])
    assert did.error is None
    assert "looked" in repr(result.entries)


async def test_an_act_is_not_checked_against_the_offer_nor_the_schema() -> None:
    """Whoever declared it was checked when the agent was built."""
    strict = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    did, _ = await acted(tool("book", lambda args, _: args, parameters=strict, check_arguments=True), {"town": 1})
    assert (did.value, did.error) == ({"town": 1}, None)


# ---- judge -----------------------------------------------------------------------------------------------------------


async def test_judge_is_one_silent_call() -> None:
    """It says nothing, streams nothing and enters no conversation."""
    seen: list[str] = []

    async def script(turn: Turn, stage: Stage) -> None:
        seen.append(await stage.judge(query()))
        await stage.speak(turn.spec.brief)

    model = ScriptedModel("done", judge=["wants a room"])
    stream = Agent(model, director=Directed(script)).turn_stream("hi", effects=FakeEffects())
    assert [text async for text in stream.text] == ["done"]
    result = await stream.result()
    assert seen == ["wants a room"]
    assert (result.llm_calls, result.text) == (2, "done")
    assert [m["content"] for m in read(model.requests[1])["messages"]] == ["hi"]


async def test_a_consult_is_asked_once_per_key() -> None:
    """A feature that asks again reads the answer it got."""
    seen: list[str] = []

    async def settle(turn: Turn) -> None:
        seen.extend([await turn.consult(query("sum"), where="main"), await turn.consult(query("sum"), where="main")])

    model = ScriptedModel("x", consult=["summary"])
    await turn(Agent(model, features=[Named("memory", Hooks(on_settle=settle))]))
    assert seen == ["summary", "summary"]
    assert model.calls == ["speak", "consult"]


async def test_a_consult_may_ask_another_model() -> None:
    """A cheaper one, say; it counts in the turn."""
    small, seen = ScriptedModel(consult=["small talk"]), list[str]()

    async def settle(turn: Turn) -> None:
        seen.append(await turn.consult(query("c"), where="main", model=small))

    result = await turn(Agent(ScriptedModel("x"), features=[Named("m", Hooks(on_settle=settle))]))
    assert (seen, small.calls, result.llm_calls) == (["small talk"], ["consult"], 2)


async def test_a_model_for_a_consult_may_be_named() -> None:
    """As everywhere that a model is asked for."""

    async def settle(turn: Turn) -> None:
        await turn.consult(query("c"), where="main", model="offline")

    result = await turn(Agent(ScriptedModel("x"), features=[Named("m", Hooks(on_settle=settle))]))
    asked = [body.model for body in bodies(result, ModelRequested)]
    assert [name.partition(":")[0] for name in asked] == ["scripted", "offline"]


@pytest.mark.parametrize("verb", ["speak", "judge", "say", "act"])
async def test_when_a_person_was_asked_the_director_must_return(verb: str) -> None:
    """Every verb is refused from there on."""

    async def script(turn: Turn, stage: Stage) -> None:
        await stage.act(tool("ask", lambda *_: Ask("Which?")), {}, key="ask")
        verbs: dict[str, Callable[[], Awaitable[Any]]] = {
            "speak": lambda: stage.speak(Brief(key="k")), "judge": lambda: stage.judge(query("k")),
            "say": lambda: stage.say("again", key="k"), "act": lambda: stage.act(tool(), {}, key="k"),
        }  # fmt: skip
        await verbs[verb]()

    with pytest.raises(UsageError, match="the director must return") as refused:
        await played(script)
    assert refused.value.code == "question-open"


async def test_a_cancellation_of_its_own_is_the_directors_failure() -> None:
    """It would pass for the end of the caller's own task, and nothing of the turn would be kept."""

    async def script(turn: Turn, stage: Stage) -> None:
        await stage.say("Hello", key="hello")
        mine = asyncio.ensure_future(asyncio.Event().wait())
        mine.cancel()
        await mine

    with pytest.raises(FeatureFailed, match="feature 'Directed' failed at direct: CancelledError") as failed:
        await played(script)
    assert failed.value.result is not None


async def test_speaking_tells_what_all_its_rounds_cost() -> None:
    """A round whose provider counted nothing among them."""
    spoken: list[Spoken] = []
    used = Usage(input_tokens=10, output_tokens=2)

    async def script(turn: Turn, stage: Stage) -> None:
        spoken.append(await stage.speak(Brief(key="a")))

    rounds = (reply(call("lookup"), usage=used), reply(call("lookup")), reply("done", usage=used))
    await played(script, *rounds, tools=[tool()])
    assert [(s.usage, s.rounds) for s in spoken] == [(used + used, 3)]
