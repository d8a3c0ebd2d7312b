"""Asking people for things: ``ask_human`` for a model, typed values for a handler."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import pytest

from onrecord.agent import Agent
from onrecord.conversation.inputs import Answered, AskField, Woke, expiry_key
from onrecord.errors import ConfigurationError, UsageError
from onrecord.governance import ask_fields, ask_human, request_input
from onrecord.governance.rules import after_tool
from onrecord.jsonio import loads
from onrecord.record.kinds import TurnPaused
from onrecord.session import pack, unpack
from onrecord.testing import FakeEffects, ScriptedModel, call
from onrecord.tools.tool import Tool, ToolContext, ToolResult
from onrecord.turn.moments import Allow, Returned
from onrecord.turn.turn import Turn
from tests.turn.acting import Result, bodies, keeping, results, texts, tool, turn
from tests.turn.pausing.asking import answered, checked, open_question, over

pytestmark = pytest.mark.unit

A = AskField("a", ask="When?", schema={"type": "string"})
B = AskField("b", schema={"type": "integer"})
C = AskField("c", schema={"type": "string", "enum": ["x", "y"]}, required=False)


def collecting(runs: list[str], *fields: AskField, **given: Any) -> Tool:
    """A tool that collects these, and counts how often its handler was entered."""

    async def handler(args: Mapping[str, Any], ctx: ToolContext[Any]) -> ToolResult:
        runs.append("entered")
        return await request_input(ctx, "What is it to be?", fields, request="trip", **given)

    return tool("trip", handler)


def value(model: ScriptedModel, request: int = 1) -> Any:
    """What the model read of the only call."""
    (text,) = texts(model.requests[request])
    return loads(text.encode())


async def test_g81_what_a_person_answers_is_the_result_and_nothing_is_no_answer() -> None:
    """The tool is not executed again; an answer without anything is refused, and the question stays open (case G81)."""
    entered: list[int] = []
    asking = ask_human()

    def counted(args: Mapping[str, Any], ctx: ToolContext[Any]) -> Any:
        entered.append(1)
        return asking.handler(args, ctx)

    held = Tool(asking.id, counted, asking.description, parameters=asking.parameters, check_arguments=True)
    model = ScriptedModel([call("ask_human", question="How old?", options=["41", "42"])], "So 42.")
    agent: Agent[Any, Any] = Agent(model, tools=[held])
    paused = await turn(agent)
    question = open_question(paused)
    assert (question.text, question.by, question.detail) == ("How old?", "ask_human", {"options": ["41", "42"]})
    with pytest.raises(UsageError) as nothing:
        await answered(agent, paused)
    assert nothing.value.code == "answer-required"
    done = await answered(agent, paused, value="42")
    assert (texts(model.requests[1]), entered, done.text) == (["42"], [1], "So 42.")
    checked(agent, paused, done)


async def test_g82_an_agent_built_anew_goes_on() -> None:
    """From bytes, as another process would (case G82)."""
    script = [call("ask_human", question="How old?")]
    paused = await turn(Agent(ScriptedModel(script), tools=[ask_human()]))
    assert paused.session is not None
    held = unpack(pack(paused.session))
    other: Agent[Any, Any] = Agent(ScriptedModel("So 42."), tools=[ask_human()])
    assert (await turn(other, Answered(open_question(paused).key, value=42), session=held)).text == "So 42."


async def test_g83_a_batch_is_settled_around_the_call_that_asked() -> None:
    """Results in order: what ran before keeps its own, what stood behind it did not run and says why (case G83)."""
    ran: list[str] = []
    noted = {name: tool(name, keeping(ran, name)) for name in ("one", "three", "four")}
    model = ScriptedModel([call("one"), call("ask_human", question="?"), call("three"), call("four")], "Done.")
    agent: Agent[Any, Any] = Agent(model, tools=[*noted.values(), ask_human()])
    paused = await turn(agent)
    done = await answered(agent, paused, value="yes")
    heard = texts(model.requests[1])
    assert heard[:2] == ["one", "yes"]
    assert all("Not executed: the turn paused on 'ask_human'" in text for text in heard[2:])
    assert ran == ["one"]
    assert results(done) == [("three", "not_run"), ("four", "not_run"), ("ask_human", "returned")]
    checked(agent, paused, done)


async def test_after_tool_rules_see_an_answer_as_any_result() -> None:
    """Backwards, so that the first has the last word. And the person may decline: that is no result."""
    from msgspec.structs import replace

    from onrecord.conversation.content import Text

    def adding(word: str) -> Any:
        def add(turn: Turn, returned: Returned) -> Allow[Any]:
            held: Any = returned.content[0]
            return Allow(replace(returned, content=(Text(f"{held.text} {word}"),)), "added")

        return after_tool(add)

    script = [call("ask_human", question="Your card?")], "Thanks."
    for answer, heard in (
        ({"value": "4111"}, "4111 second first"),
        ({"approved": False, "note": "no"}, "Declined by a person: no"),
    ):
        model = ScriptedModel(*script)
        agent: Agent[Any, Any] = Agent(model, tools=[ask_human()], features=[adding("first"), adding("second")])
        await answered(agent, await turn(agent), **answer)
        assert texts(model.requests[1]) == [heard]


async def test_a_message_may_be_the_answer() -> None:
    """Where the tool says so."""
    model = ScriptedModel([call("ask_human", question="How old?")], "So 42.")
    agent: Agent[Any, Any] = Agent(model, tools=[ask_human(on_message="answer", audience="speaker")])
    paused = await turn(agent)
    done = await turn(agent, "forty-two", session=paused.session)
    assert (done.text, texts(model.requests[1])) == ("So 42.", ["forty-two"])


async def test_g93_a_partial_answer_asks_for_the_rest_without_a_model() -> None:
    """Wrong types and fields that nobody asked for are refused, and the question stays open (case G93)."""
    runs: list[str] = []
    model = ScriptedModel([call("trip")], "Booked.")
    agent: Agent[Any, Any] = Agent(model, tools=[collecting(runs, A, B, C, about={"why": "a trip"})])
    paused = await turn(agent)
    question = open_question(paused)
    assert [f.name for f in question.fields] == ["a", "b", "c"]
    assert question.detail == {"request": "trip", "missing": ["a", "b"], "supplied": {}, "about": {"why": "a trip"}}
    wrong: list[Any] = [{"b": "two"}, {"c": "z"}, {"d": 1}, {}, "Monday", {"a": None}]
    for given in wrong:
        with pytest.raises(UsageError) as refused:
            await answered(agent, paused, value=given)
        assert refused.value.code == "answer-invalid"
        assert "two" not in str(refused.value)
    first = await answered(agent, paused, value={"a": "Monday", "c": "x"})
    again = open_question(first)
    assert again.detail == {
        "request": "trip", "missing": ["b"], "supplied": {"a": "Monday", "c": "x"}, "about": {"why": "a trip"},
    }  # fmt: skip
    assert ([f.name for f in again.fields], again.key == question.key, len(model.requests)) == (["b"], False, 1)
    done = await answered(agent, first, value={"b": 2})
    assert value(model) == {
        "status": "input_received", "request": "trip", "values": {"a": "Monday", "c": "x", "b": 2},
        "origins": {"a": "response", "c": "response", "b": "response"},
    }  # fmt: skip
    assert (len(model.requests), done.text) == (2, "Booked.")
    checked(agent, paused, first, done)


async def test_an_answer_to_the_question_before_is_stale() -> None:
    """Once part of it was given, the first question is closed."""
    agent: Agent[Any, Any] = Agent(ScriptedModel([call("trip")], "Booked."), tools=[collecting([], A, B)])
    paused = await turn(agent)
    first = await answered(agent, paused, value={"a": "Monday"})
    late = await answered(agent, over(first, first), key=open_question(paused).key, value={"b": 2})
    assert (late.status, late.lines[0].code, late.changed) == ("ignored", "stale-answer", False)
    assert late.lines[0].status == "ignored"


async def test_what_is_supplied_is_not_asked_for() -> None:
    """And is said to come from the declaration."""
    model = ScriptedModel([call("trip")], "Booked.")
    agent: Agent[Any, Any] = Agent(model, tools=[collecting([], A, B, supplied={"b": 3})])
    paused = await turn(agent)
    assert [f.name for f in open_question(paused).fields] == ["a"]
    await answered(agent, paused, value={"a": "Monday"})
    assert value(model)["origins"] == {"b": "declaration", "a": "response"}


async def test_a_collection_may_be_declined() -> None:
    """The model reads that it was, with the note."""
    model = ScriptedModel([call("trip")], "Then not.")
    agent: Agent[Any, Any] = Agent(model, tools=[collecting([], A)])
    done = await answered(agent, await turn(agent), approved=False, by="ana", note="not now")
    assert value(model) == {"status": "input_declined", "request": "trip", "note": "not now"}
    assert results(done) == [("trip", "failed")]


async def test_a_collection_that_nobody_answers_is_declined_by_the_clock() -> None:
    """The model reads why, since nobody left a note."""
    effects = FakeEffects()
    model = ScriptedModel([call("trip")], "Then not.")
    agent: Agent[Any, Any] = Agent(model, tools=[collecting([], A, expires_s=60)])
    paused = await turn(agent, effects=effects)
    effects.advance(hours=1)
    await turn(agent, Woke(expiry_key(open_question(paused))), session=paused.session, effects=effects)
    assert value(model) == {"status": "input_declined", "request": "trip", "note": "nobody answered in time"}


async def test_a_message_is_the_value_of_the_only_text_that_is_missing() -> None:
    """Where messages answer; one that fits nothing asks again."""
    model = ScriptedModel([call("trip")], "Booked.")
    number = AskField("b", schema={"type": "string", "pattern": "^[0-9]+$"})
    agent: Agent[Any, Any] = Agent(model, tools=[collecting([], number, on_message="answer")])
    paused = await turn(agent)
    again = await turn(agent, "two", session=paused.session)
    done = await turn(agent, "22", session=again.session)
    assert (again.status, done.status, value(model)["values"]) == ("paused", "answered", {"b": "22"})


@pytest.mark.parametrize(
    ("name", "wrong", "code", "right"),
    [
        ("instant", "2026-03-01T09:00", "no-offset", "2026-03-01T09:00+01:00"),
        ("time-range", "2026-03-01T09:00Z/2026-03-01T09:00Z", "out-of-order", "2026-03-01T09:00Z/2026-03-01T10:00Z"),
        ("time-range", "2026-03-01T09:00Z", "not-a-range", "2026-03-01T09:00Z/2026-03-01T09:00:00.1Z"),
        ("zone", "PST", "not-a-zone", "Europe/Lisbon"),
    ],
)
async def test_a_time_that_is_none_is_refused_and_the_question_stays_open(
    name: str, wrong: str, code: str, right: str
) -> None:
    """Nothing runs; the reason is told without a word of the answer, and the rest may be given before."""
    runs: list[str] = []
    when = AskField("when", schema={"type": "string", "format": name})
    model = ScriptedModel([call("trip")], "Booked.")
    agent: Agent[Any, Any] = Agent(model, tools=[collecting(runs, when, B)])
    paused = await turn(agent)
    with pytest.raises(UsageError) as refused:
        await answered(agent, paused, value={"when": wrong, "b": 2})
    assert (refused.value.code, code in str(refused.value), wrong in str(refused.value)) == (
        "answer-invalid",
        True,
        False,
    )
    assert runs == ["entered"]
    some = await answered(agent, paused, value={"b": 2})
    await answered(agent, some, value={"when": right})
    assert value(model)["values"] == {"b": 2, "when": right}


async def test_a_message_that_fits_no_field_is_told_why_and_how_often() -> None:
    """The ask comes back with what was refused, cut, and a count; a reader of the question can say it."""
    when = AskField("when", schema={"type": "string", "format": "instant"})
    model = ScriptedModel([call("trip")], "Booked.")
    agent: Agent[Any, Any] = Agent(model, tools=[collecting([], when, on_message="answer")])
    at = await turn(agent)
    seen = []
    for said in ("tomorrow " * 10, "2026-03-01T09:00", "2026-03-01T09:00Z"):
        at = await turn(agent, said, session=at.session)
        if at.question is not None:
            detail: Any = at.question.detail
            seen.append((detail["refused"]["answer"], detail["refused"]["reason"][-16:], detail["repeat"]))
    assert seen == [
        (("tomorrow " * 10)[:64], "(not-an-instant)", {"count": 1}),
        ("2026-03-01T09:00", "01:00 (no-offset)"[-16:], {"count": 2}),
    ]
    assert value(model)["values"] == {"when": "2026-03-01T09:00Z"}


async def test_a_message_that_could_mean_several_fields_is_refused_for_none() -> None:
    """Nobody can say which of them it fits, or does not fit."""
    fields = [AskField(name, schema={"type": "string", "format": "zone"}) for name in ("from", "to")]
    agent: Agent[Any, Any] = Agent(ScriptedModel([call("trip")]), tools=[collecting([], *fields, on_message="answer")])
    paused = await turn(agent)
    for said in ("PST", "Europe/Lisbon"):
        again = await turn(agent, said, session=paused.session)
        assert open_question(again).detail == open_question(paused).detail


@dataclass
class Trip:
    """A trip."""

    city: str
    nights: int
    board: Literal["half", "full"] = "half"


def test_fields_come_from_a_type() -> None:
    """What has a default need not be answered."""
    fields = ask_fields(Trip)
    assert [(f.name, f.required) for f in fields] == [("city", True), ("nights", True), ("board", False)]
    assert fields[1].schema["type"] == "integer"
    with pytest.raises(ConfigurationError):
        ask_fields(dict[str, int])


async def test_a_type_is_collected() -> None:
    """Its fields are the question's."""

    async def handler(args: Mapping[str, Any], ctx: ToolContext[Any]) -> ToolResult:
        return await request_input(ctx, "Where to?", Trip)

    model = ScriptedModel([call("trip")], "Booked.")
    agent: Agent[Any, Any] = Agent(model, tools=[tool("trip", handler)])
    await answered(agent, await turn(agent), value={"city": "Lund", "nights": 2})
    assert value(model)["values"] == {"city": "Lund", "nights": 2}


WRONG: list[tuple[tuple[Any, ...], dict[str, Any], str]] = [
    ((), {}, "1 to 32 fields"),
    ((A, A), {}, "each of another name"),
    ((C,), {}, "nothing to ask"),
    ((A,), {"supplied": {"a": "x"}}, "nothing to ask"),
    ((A,), {"supplied": {"z": "x"}}, "'z' is supplied"),
    ((A, B), {"supplied": {"b": "x"}}, "does not fit"),
    ((AskField("a", schema={"type": "array"}),), {}, "each field is one of"),
    ((AskField("a", schema={"enum": [str(n) for n in range(101)]}),), {}, "at most 100 values"),
    ((AskField("a", schema={"type": "integer", "format": "instant"}),), {}, "a format for texts alone"),
    ((AskField("a", schema={"type": "string", "format": "zone"}), A), {"supplied": {"a": "PST"}}, "another name"),
    (
        (AskField("z", schema={"type": "string", "format": "zone"}), A),
        {"supplied": {"z": "PST"}},
        "does not fit its field",
    ),
    ((AskField("a", ask="x" * 4097),), {}, "each field is one of"),
    ((A,), {"about": "x" * 16385}, "at most 16384"),
]


@pytest.mark.parametrize(("fields", "given", "problem"), WRONG, ids=[problem for *_, problem in WRONG])
async def test_what_nobody_could_answer_is_refused(fields: Any, given: dict[str, Any], problem: str) -> None:
    """By name, to the model too: it is the tool that failed."""
    model = ScriptedModel([call("trip")], "Oh.")
    await turn(Agent(model, tools=[collecting([], *fields, **given)]))
    assert problem in texts(model.requests[1])[0]


async def test_what_was_collected_is_on_the_record_of_the_pause_and_nowhere_else() -> None:
    """The second question says what is known so far: it is kept with the pause."""
    agent: Agent[Any, Any] = Agent(ScriptedModel([call("trip")]), tools=[collecting([], A, B)])
    first: Result = await answered(agent, await turn(agent), value={"a": "Monday"})
    (body,) = bodies(first, TurnPaused)
    assert body.pending.question.partial
    assert body.pending.question.detail is not None


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
async def test_a_number_that_json_cannot_hold_is_no_answer(odd: float) -> None:
    """It would be stored as null: it is refused while the question is open, and not when its turn is taken."""
    runs: list[str] = []
    agent = Agent(
        ScriptedModel([call("trip")], "Done."), tools=[collecting(runs, AskField("n", schema={"type": "number"}))]
    )
    paused = await turn(agent)
    with pytest.raises(UsageError, match="expected number") as refused:
        await answered(agent, paused, value={"n": odd})
    assert refused.value.code == "answer-invalid"
    assert (await answered(agent, paused, value={"n": 1.5})).text == "Done."
