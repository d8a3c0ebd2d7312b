"""Choosing: a model and instructions for a turn, and a model for each request inside one answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, cast

import pytest
from msgspec.structs import replace

from onrecord.agent import Agent
from onrecord.conversation.inputs import Answered, Ask
from onrecord.errors import ConfigurationError, FeatureFailed
from onrecord.models.model import ModelCard, preset
from onrecord.models.request import Piece, Request, Settings
from onrecord.prompt.model_choice import Choice, Choose
from onrecord.record.kinds import ModelRequested, Noted
from onrecord.session import pack, unpack
from onrecord.testing import ScriptedModel
from onrecord.turn.configuring import PerTurn
from onrecord.turn.moments import SLOTS, Hooks
from onrecord.turn.turn import Turn
from tests.models.wired import chat, merging
from tests.turn.acting import Named, bodies, call, last_answer, read, rounds_of, tool, turn
from tests.turn.test_moment_request import on_request

pytestmark = pytest.mark.unit


# ---- for a turn ------------------------------------------------------------------------------------------------------


def notes(result: Any) -> list[Mapping[str, Any]]:
    """What was chosen for the turn, as the record says it."""
    return [dict(note.about) for note in bodies(result, Noted) if note.by == "configure"]


async def test_a_model_and_instructions_are_chosen_once_a_turn_and_filed() -> None:
    """Both are functions of the turn; all rounds go with what they said."""
    model, asked = ScriptedModel([call("lookup")], "done"), list[str]()

    def pick(live: Turn) -> ScriptedModel:
        asked.append("model")
        return model

    def tell(live: Turn) -> str:
        asked.append("instructions")
        return f"You serve {live.session.key.id}."

    result = await turn(Agent(pick, instructions=tell, tools=[tool()]), session="s")
    assert asked == ["model", "instructions"]
    assert [read(sent)["system"] for sent in model.requests] == ["You serve s."] * 2
    assert notes(result) == [{"model": "scripted:script", "instructions": "12 characters"}]
    assert result.entries[0].body.manifest["model"] == "function"  # type: ignore[attr-defined]


@pytest.mark.parametrize("answers", [None, "other"])
@pytest.mark.parametrize("waits", [False, True])
async def test_what_is_chosen_per_turn_may_be_async_and_is_told_its_default(answers: str | None, waits: bool) -> None:
    """None keeps the default (seed 004, ``configure``); what holds is filed once, before the first request."""
    model, told = ScriptedModel([call("lookup")], "done"), list[object]()

    def choose(live: Turn, default: object) -> object:
        told.append(default)
        return answers if isinstance(default, str) else None

    async def later(live: Turn, default: object) -> object:
        return choose(live, default)

    chosen = later if waits else choose
    agent = Agent(PerTurn(model, chosen), instructions=PerTurn("You help.", chosen), tools=[tool()])
    result = await turn(agent, session="s")
    held = answers or "You help."
    assert [read(sent)["system"] for sent in model.requests] == [held] * 2
    assert told == [model, "You help."]
    assert notes(result) == [{"model": "scripted:script", "instructions": f"{len(held)} characters"}]


async def test_a_function_of_the_turn_may_be_async() -> None:
    """What it raises, or gives in vain, is told as of a plain one."""

    async def tell(live: Turn) -> str:
        return "You help."

    async def nothing(live: Turn) -> Any:
        return 7

    model = ScriptedModel("done")
    await turn(Agent(model, instructions=tell), session="s")
    assert read(model.requests[0])["system"] == "You help."
    with pytest.raises(ConfigurationError, match="instructions= returned int, not a text"):
        await turn(Agent(model, instructions=nothing), session="s")


async def test_a_model_that_is_an_object_is_asked_for_again_when_a_paused_turn_goes_on() -> None:
    """It does not outlive its process; which one it was is noted in each take."""
    models = [ScriptedModel([call("lookup")]), ScriptedModel("done")]
    left = list(models)
    asks = tool(handler=lambda _, ctx: ctx.ask(Ask("Sure?")))
    agent: Agent[Any, Any] = Agent(lambda _: left.pop(0), tools=[asks])
    paused = await turn(agent, session="s")
    assert paused.question is not None
    result = await turn(agent, Answered(paused.question.key, value=True), session=paused.session)
    assert (len(notes(paused)), len(notes(result)), left) == (1, 1, [])


async def test_what_was_chosen_stays_when_a_paused_turn_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name and the instructions are those that the turn began with, in another process too (spec 11, 40)."""
    asked, asks = list[str](), tool(handler=lambda _, ctx: ctx.ask(Ask("Sure?")))
    small, large = ScriptedModel([call("lookup")], "done"), ScriptedModel("large", "fixed")
    monkeypatch.setattr("onrecord.turn.configuring.as_model", lambda given: {"s": small, "l": large}.get(given, given))

    def model(turn: Turn) -> str:
        asked.append("model")
        return "s" if len(asked) < 3 else "l"

    def instructions(turn: Turn) -> str:
        asked.append("instructions")
        return f"Version {len(asked)}."

    agent: Agent[Any, Any] = Agent(model, instructions=instructions, tools=[asks])
    paused = await turn(agent, session="s")
    assert paused.question is not None
    assert paused.session is not None
    session, answer = unpack(pack(paused.session)), Answered(paused.question.key, value=True)
    result = await turn(agent, answer, session=session)
    assert (result.text, asked) == ("done", ["model", "instructions"])
    assert [read(request)["system"] for request in small.requests] == ["Version 2."] * 2
    assert notes(paused) == notes(result)
    assert (await turn(agent, "again", session=result.session)).text == "large"
    assert asked[2:] == ["model", "instructions"]
    fixed = await turn(agent.with_(instructions="Fixed.", model=large), answer, session=session)
    assert (fixed.text, notes(fixed)) == ("fixed", [])  # what the agent itself says now is what it says


async def test_a_name_is_a_choice_too() -> None:
    """As in ``Agent("offline")``."""
    result = await turn(Agent(lambda _: "offline", instructions="You help travellers."))
    assert notes(result) == [{"model": "offline:rules"}]


@pytest.mark.parametrize(
    ("model", "told"),
    [
        (lambda _: 7, "model= returned int, neither a name nor a model"),
        (lambda _: None, "model= returned NoneType, neither a name nor a model"),
        (lambda _: "opnai:x", "unknown model provider in 'opnai:x'"),
    ],
)
async def test_what_is_no_model_is_refused_by_what_it_is(model: Callable[[Turn], Any], told: str) -> None:
    """Nothing was asked."""
    with pytest.raises(ConfigurationError) as refused:
        await turn(Agent(model))
    assert str(refused.value) == told


async def test_instructions_that_are_no_text_are_refused_and_a_function_that_raises_is_the_agents_failure() -> None:
    """Named, and with the entries of the turn."""
    with pytest.raises(ConfigurationError, match="instructions= returned int, not a text"):
        await turn(Agent(ScriptedModel(), instructions=lambda _: 7))  # type: ignore[arg-type,return-value]
    with pytest.raises(FeatureFailed, match="feature 'agent' failed at model: ZeroDivisionError") as failed:
        await turn(Agent(lambda _: 1 / 0))  # type: ignore[arg-type,return-value]
    assert "ZeroDivisionError (test_model_choice.py, line " in failed.value.hint
    assert failed.value.result is not None


# ---- for a request ---------------------------------------------------------------------------------------------------


def by_round(*choices: Any) -> Choose:
    """One choice for each round."""
    return Choose(lambda live, _: choices[len(live.rounds)])


async def test_e19_a_switch_in_mid_turn_keeps_one_answer_of_rounds_over_two_protocols() -> None:
    """Two requests to two models, one message, ids of its own for each round and call (case E19).

    Two hosts take turns in ``tests/agent/test_continuation.py``; the case's ``switch-1`` is our ``c0``.
    """
    first, second = merging([call("lookup", wire_id="switch-1")]), chat("done")
    result = await turn(Agent(first, tools=[tool()], features=[by_round(None, second)]), session="s")
    assert (len(first.bodies), len(second.bodies), result.text) == (1, 1, "done")
    rounds, turn_id = last_answer(result).rounds, last_answer(result).turn
    assert [held.use and held.use.provider for held in rounds] == ["merging", "acme"]
    assert [held.id for held in rounds] == [f"{turn_id}/answer/r0", f"{turn_id}/answer/r1"]
    assert rounds[0].calls[0].id == f"{turn_id}/answer/r0/c0"
    scopes = [body.receipt and body.receipt.scope for body in bodies(result, ModelRequested)]
    assert scopes == ['["merging","http://localhost:1/v1","merging","s"]', '["acme","http://localhost:1/v1","m","s"]']
    asked, answered = json.loads(second.bodies[0])["messages"][-2:]
    assert asked["tool_calls"][0]["id"] == answered["tool_call_id"] != "switch-1"
    assert len(bodies(result, ModelRequested)) == len(rounds_of(result)) == 2


async def test_e18_a_cap_of_the_step_wins_over_the_callers_and_falls_back_to_it() -> None:
    """128, 64, none over a caller's 512; and over none (case E18)."""
    choices = [Choice(settings=Settings(max_tokens=cap)) for cap in (128, 64)]
    answers = [[call("lookup", n=1)], [call("lookup", n=2)], "done"]
    cases: list[tuple[dict[str, Any], int | None]] = [({"max_tokens": 512}, 512), ({}, None)]
    for caps, last in cases:
        model = chat(*answers)
        await turn(Agent(preset(model, **caps), tools=[tool()], features=[by_round(*choices, None)]))
        sent = [json.loads(body) for body in model.bodies]
        assert [body.get("max_tokens") for body in sent] == [128, 64, last]
        assert all("max_output_tokens" not in body for body in sent)


async def test_e22_new_instructions_reach_the_next_request_of_the_same_scope() -> None:
    """A hook that leads with its own text changes it between rounds (case E22, at the bytes)."""

    def lead(asked: Request) -> Request:
        return replace(asked, pieces=(Piece(source="mine", text=f"Step {asked.where[-1]}.", rank=0),))

    model = chat([call("lookup")], "done")
    await turn(Agent(model, tools=[tool()], features=[on_request(lead)]))
    assert [json.loads(body)["messages"][0]["content"] for body in model.bodies] == ["Step 0.", "Step 1."]


async def test_e23_a_model_without_tools_is_sent_neither_tools_nor_a_choice() -> None:
    """Its card says so; the first request had both (case E23; learned refusals have tests of their own)."""
    first, second = chat([call("lookup")]), chat("done", model="bare", tools=False)

    def choose(live: Turn, asked: Request) -> Any:
        return second if live.rounds else None

    async def must(live: Turn, asked: Request) -> Request:
        return replace(asked, choice="required") if asked.model is first else asked

    features: list[Any] = [Choose(choose), Named("must", Hooks(on_request=must))]
    await turn(Agent(first, tools=[tool(), tool("other")], features=features))
    begun, went_on = json.loads(first.bodies[0]), json.loads(second.bodies[0])
    assert (len(begun["tools"]), begun["tool_choice"]) == (2, "required")
    assert not {"tools", "tool_choice"} & went_on.keys()


NOTHING: Any = object()


async def hidden() -> Mapping[str, str]:
    """Headers of one tenant."""
    return {"X-Tenant": "one"}


async def test_nothing_that_was_chosen_for_one_model_goes_along_to_another() -> None:
    """Settings and headers of an earlier choice, and what a preset held, stay behind; extra fields too."""
    first, second = chat([call("lookup")]), chat("done", model="n")
    held = preset(first, temperature=0.1, seed=7, top_k=3)

    async def early(live: Turn, asked: Request) -> Request:
        return replace(asked, settings=Settings(top_p=0.5, extra={"secret": 1}), headers=hidden)

    chooser = Named("early", Hooks(on_request=early, order={"request": SLOTS["request"]["CHOOSE"]}))
    await turn(Agent(held, tools=[tool()], features=[chooser, by_round(None, second)]))
    (begun,) = first.requests
    assert (begun.settings.top_p, begun.headers) == (0.5, hidden)
    assert {"temperature", "seed", "top_p", "secret"} < json.loads(first.bodies[0]).keys()
    (went_on,) = second.requests
    assert (went_on.settings, went_on.headers) == (Settings(), None)
    assert not {"temperature", "seed", "top_k", "top_p", "secret"} & json.loads(second.bodies[0]).keys()


async def test_what_a_choice_brings_goes_with_its_model() -> None:
    """Settings and headers that were chosen together with it."""
    other = chat("done", model="n")
    choice = Choice(other, settings=Settings(temperature=0.0), headers=hidden)
    result = await turn(Agent(chat(), features=[Choose(lambda *_: choice)]))
    (asked,) = other.requests
    assert (asked.settings.temperature, asked.headers) == (0.0, hidden)
    assert "X-Tenant" not in str(result.entries)


async def test_a_name_leads_to_one_model_for_all_requests() -> None:
    """And a function may be async."""
    seen = list[Any]()

    async def choose(live: Turn, asked: Request) -> str:
        return "offline"

    async def look(live: Turn, asked: Request) -> Request:
        seen.append(asked.model)
        return asked

    agent: Agent[Any, Any] = Agent(ScriptedModel(), features=[Choose(choose), Named("look", Hooks(on_request=look))])
    for _ in range(2):
        await turn(agent)
    assert seen[0].card.provider == "offline"
    assert seen[0] is seen[1]


@pytest.mark.parametrize(
    ("choice", "told"),
    [
        (lambda *_: 7, "it chose a int, which is no model"),
        (lambda *_: Choice(NOTHING), "it chose a object, which is no model"),
        (lambda *_: "opnai:x", "unknown model provider in 'opnai:x'"),
        (lambda *_: 1 / 0, "ZeroDivisionError"),
        (lambda *_: Choice(settings=Settings(extra={"x": object()})), "it left settings that JSON cannot hold"),
        (lambda *_: Choice(settings=cast("Any", 5)), "it left settings that are none"),
        (lambda *_: Choice(headers=cast("Any", 5)), "it left headers that are no function"),
    ],
)
async def test_what_is_no_choice_fails_the_turn_by_name(choice: Any, told: str) -> None:
    """Nothing is asked."""
    with pytest.raises(FeatureFailed) as failed:
        await turn(Agent(ScriptedModel(), features=[Choose(choice)]))
    assert str(failed.value) == f"feature 'choose' failed at request: {told}"


def test_choose_takes_a_function() -> None:
    """Nothing else."""
    with pytest.raises(ConfigurationError, match="Choose takes a function of the turn and the request, not a object"):
        Choose(NOTHING)


@pytest.mark.parametrize(("needs", "tools"), [(True, ["lookup"]), (False, [])])
async def test_the_last_answer_has_definitions_where_the_model_that_gives_it_needs_them(
    needs: bool, tools: list[str]
) -> None:
    """The chosen model's card decides, not that of the turn."""
    card = ModelCard(provider="p", model="n", protocol="scripted", needs_tools_with_calls=needs)
    turns = ScriptedModel([call("lookup")], card=replace(card, needs_tools_with_calls=not needs))
    last = ScriptedModel("that is all", card=card)
    await turn(Agent(turns, tools=[tool()], rounds=1, features=[by_round(None, last)]))
    (asked,) = last.requests
    assert (asked.purpose, read(asked)["tools"]) == ("wrap_up", tools)
