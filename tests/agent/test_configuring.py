"""A model and instructions that are functions of the turn: chosen once, filed, and kept over a pause (case 151)."""

from __future__ import annotations

from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.conversation.inputs import Ask
from onrecord.errors import ConfigurationError, FeatureFailed
from onrecord.record.kinds import ModelRequested, Noted
from onrecord.testing import ScriptedModel, call
from onrecord.turn.moments import Hooks
from onrecord.turn.turn import Turn
from tests.turn.acting import Named, bodies, read, tool, turn
from tests.turn.pausing.asking import answered

pytestmark = pytest.mark.unit


async def test_151_model_and_instructions_may_be_functions_of_the_turn() -> None:
    """Asked once per turn, however many rounds it has, and filed (case 151)."""
    big, asked = ScriptedModel(call("x"), "done"), list[str]()

    def model(turn: Turn) -> Any:
        asked.append("model")
        return big

    def instructions(turn: Turn) -> str:
        asked.append(f"instructions for {turn.context}")
        return "Be kind."

    agent: Agent[Any, Any] = Agent(model, instructions=instructions, tools=[tool("x")])
    result = await turn(agent, context="ana")
    assert asked == ["model", "instructions for ana"]
    assert [read(r)["system"] for r in big.requests] == ["Be kind.", "Be kind."]
    assert [b.model for b in bodies(result, ModelRequested)] == ["scripted:script"] * 2
    (noted,) = bodies(result, Noted)
    assert (noted.by, noted.about["model"]) == ("configure", "scripted:script")
    assert "kind" not in repr(noted)
    assert agent.spec.manifest["model"] == "function"


async def test_151_a_function_may_name_its_model() -> None:
    """By the names that ``model=`` takes (case 151)."""
    agent: Agent[Any, Any] = Agent(lambda _: "offline")
    assert (await turn(agent, "hello")).text


async def test_151_a_turn_that_waited_goes_on_with_what_was_chosen() -> None:
    """In another process: neither function is asked again, where the model was given by its name (case 151)."""

    async def sure(turn: Turn, made: Any) -> Any:
        return made if turn.resumed is not None else Ask("Sure?")

    names, told = iter(["offline", "local:none"]), iter(["Be kind.", "Be as brief as can be."])
    sure_of = Named("sure", Hooks(on_reply=sure))
    agent: Agent[Any, Any] = Agent(lambda _: next(names), instructions=lambda _: next(told), features=[sure_of])
    paused = await turn(agent, "hello")
    done = await answered(agent, paused, approved=True)
    (chosen,), (kept,) = bodies(paused, Noted), bodies(done, Noted)
    assert kept.about == chosen.about == {"model": "offline:rules", "instructions": "8 characters"}


async def test_151_fixed_ones_file_nothing() -> None:
    """What is known from the declaration is in the manifest (case 151: returns nothing, key absent)."""
    assert bodies(await turn(Agent(ScriptedModel("x"), instructions="Base.")), Noted) == []


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"model": lambda _: 42}, "model= returned int, neither a name nor a model"),
        ({"model": lambda _: "opnai:x"}, "unknown model provider in 'opnai:x'"),
        ({"model": ScriptedModel(), "instructions": lambda _: None}, "instructions= returned NoneType, not a text"),
    ],
)
async def test_a_function_that_returns_something_else_is_refused_by_name(given: dict[str, Any], problem: str) -> None:
    """Before any request."""
    with pytest.raises(ConfigurationError, match=problem):
        await turn(Agent(**given))


async def test_they_see_the_turn_as_it_was_admitted() -> None:
    """They may look at the input, the conversation so far and the session's data."""
    seen: list[Any] = []

    def instructions(turn: Turn) -> str:
        seen.append((turn.is_new, len(turn.conversation.messages), dict(turn.data), turn.spec.name))
        return ""

    agent: Agent[Any, Any] = Agent(ScriptedModel("a", "b"), instructions=instructions, name="ana")
    first = await turn(agent)
    await turn(agent, session=first.session)
    assert seen == [(True, 1, {}, "ana"), (False, 3, {}, "ana")]


@pytest.mark.parametrize("what", ["model", "instructions"])
async def test_what_a_function_of_the_turn_raises_is_the_agents_failure(what: str) -> None:
    """As with any other code of the application: named without its words, and the take is kept."""

    def broken(turn: Turn) -> Any:
        raise KeyError("a secret")

    given: dict[str, Any] = {"model": ScriptedModel(), what: broken}
    with pytest.raises(FeatureFailed) as failed:
        await turn(Agent(**given, name="ana"))
    assert str(failed.value) == f"feature 'ana' failed at {what}: KeyError"
    assert failed.value.result is not None
    assert failed.value.result.status == "failed"


async def test_151_a_model_that_was_no_name_is_asked_for_again() -> None:
    """An object does not outlive its process: the function is asked once more when the turn goes on (case 151)."""

    async def sure(turn: Turn, made: Any) -> Any:
        return made if turn.resumed is not None else Ask("Sure?")

    model, asked = ScriptedModel("Hello."), list[str]()

    def choose(turn: Turn) -> Any:
        asked.append(turn.id)
        return model

    agent: Agent[Any, Any] = Agent(choose, features=[Named("sure", Hooks(on_reply=sure))])
    done = await answered(agent, await turn(agent, "hello"), approved=True)
    assert (done.text, len(asked), len(set(asked))) == ("Hello.", 2, 1)
