"""Declaring an agent: what is checked when it is built, and what can be given anew (architecture §13)."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import UnsetType

from onrecord.agent import Agent
from onrecord.errors import ConfigurationError, ToolInvalid
from onrecord.governance.rules import after_tool, before_tool, on_input, on_output
from onrecord.record.kinds import VerdictFiled
from onrecord.testing import ScriptedModel, call
from onrecord.tools.tool import Tool
from onrecord.turn.answer import Typed
from onrecord.turn.director import Solo, Stage
from onrecord.turn.moments import Allow, Deny, Hooks
from onrecord.turn.turn import Turn
from tests.turn.acting import Named, read, tool, turn

pytestmark = pytest.mark.unit

WRONG: Any = 3
SHORTHAND = {"cidade": {"type": "string"}}


@pytest.mark.parametrize("rounds", [-1, 1.5, 51, True, "5", None])
def test_181_rounds_are_a_whole_number_up_to_fifty(rounds: Any) -> None:
    """Named with the value, and refused before anything runs (case 181; zero is allowed: it sends no tools)."""
    with pytest.raises(ConfigurationError, match=f"rounds must be a whole number from 0 to 50, got {rounds!r}"):
        Agent(ScriptedModel(), rounds=rounds)


@pytest.mark.parametrize("rounds", [0, 1, 50])
def test_181_the_last_given_rounds_count(rounds: int) -> None:
    """Five when nothing is said (case 181)."""
    agent: Agent[Any, Any] = Agent(ScriptedModel())
    assert agent.spec.rounds == 5
    assert agent.with_(rounds=3).with_(rounds=rounds).spec.rounds == rounds


def test_a1_two_tools_of_one_id_are_refused_by_name() -> None:
    """Ids must be unique: the model calls by them (case A1, README decision 4)."""
    with pytest.raises(ToolInvalid, match="two tools have the id 'lookup'") as refused:
        Agent(ScriptedModel(), tools=[tool("lookup"), tool("lookup")])
    assert refused.value.hint == "ids must be unique: the model calls by them"
    assert refused.value.code == "tool-invalid"


def test_184_a_third_tool_named_like_a_listed_one_is_refused() -> None:
    """However the list was put together (case 184)."""
    with pytest.raises(ToolInvalid, match="two tools have the id 'a'"):
        Agent(ScriptedModel(), tools=[*[tool("a"), tool("b")], tool("a")])


@pytest.mark.parametrize("parameters", [SHORTHAND, {"type": "string"}, {}, [], "object", None])
def test_parameters_that_are_no_json_schema_object_are_refused(parameters: Any) -> None:
    """A vendor would accept them and never call the tool; an action's shorthand is the usual slip (seed 001)."""
    with pytest.raises(ToolInvalid, match="tool 'preco': parameters must be a JSON Schema object") as refused:
        tool("preco", parameters=parameters)
    assert refused.value.hint == 'write {"type": "object", "properties": {...}, "required": [...]}'


def test_the_properties_of_parameters_are_an_object_too() -> None:
    """A list of names is not a schema."""
    with pytest.raises(ToolInvalid, match='the "properties" of parameters must be an object'):
        tool("preco", parameters={"type": "object", "properties": ["cidade"]})


def test_a_tool_without_parameters_takes_none() -> None:
    """And is sent as such."""
    assert tool("now").parameters == {"type": "object", "properties": {}}


@pytest.mark.parametrize("size", [0, -1])
def test_a15_a_size_limit_is_positive_and_leaving_it_out_turns_it_off(size: int) -> None:
    """Zero is not off, and the hint says so (case A15)."""
    with pytest.raises(ToolInvalid, match=f"max_result_size_chars must be positive, got {size}") as refused:
        tool(max_result_size_chars=size)
    assert refused.value.hint == "leave it out for no limit"


@pytest.mark.parametrize(
    ("made", "problem"),
    [
        (lambda: tool(""), "a tool needs an id"),
        (lambda: tool(WRONG), "a tool needs an id"),
        (lambda: tool("x", WRONG), "tool 'x': the handler is not callable"),
        (lambda: Agent(ScriptedModel(), tools=[WRONG]), "'int' in tools= is neither a tool nor a toolset"),
    ],
)
def test_what_is_no_tool_is_refused(made: Any, problem: str) -> None:
    """With what to do about it."""
    with pytest.raises(ToolInvalid, match=problem):
        made()


async def plain(turn: Turn, call: Any) -> None:
    """A function that nobody made a rule of."""


@pytest.mark.parametrize("feature", [plain, object(), Named("", Hooks()), Typed, "typed", None])
def test_a9_what_is_no_feature_is_refused(feature: Any) -> None:
    """A bare function, a class, a feature without a name (case A9)."""
    with pytest.raises(ConfigurationError, match="in features= is no feature") as refused:
        Agent(ScriptedModel(), features=[feature])
    assert refused.value.hint


def test_a7_a_hook_at_a_moment_that_does_not_exist_is_refused() -> None:
    """The slip is named; the moments are the fields of `Hooks` (cases A7, A8: our decorators know their moment)."""
    with pytest.raises(TypeError, match="before_toll"):
        Hooks(before_toll=plain)  # type: ignore[call-arg] # the slip itself


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"name": ""}, "an agent needs a name"),
        ({"model": "opnai:gpt-5-mini"}, "unknown model provider in 'opnai:gpt-5-mini'"),
        ({"model": 42}, "model must be a name, a model or a function of the turn, not int"),
        ({"model": None}, "model must be a name, a model or a function of the turn, not NoneType"),
        ({"director": 42}, "'int' in director= is no director"),
        ({"director": Solo}, "'Solo' in director= is no director"),
        ({"instructions": 42}, "instructions must be a text or a function of the turn"),
        ({"colour": "blue"}, "Agent has no parameter 'colour'"),
    ],
)
def test_a_declaration_that_cannot_work_is_refused(given: dict[str, Any], problem: str) -> None:
    """When the agent is built."""
    agent: Agent[Any, Any] = Agent(ScriptedModel())
    with pytest.raises(ConfigurationError, match=problem):
        agent.with_(**given)


def test_one_tool_or_feature_without_a_list_is_told_so() -> None:
    """And so is none at all, written as None."""
    for given in ({"tools": tool("price")}, {"features": plain}, {"tools": None}):
        (name,) = given
        with pytest.raises(ConfigurationError, match=f"{name}= takes a list, not a ") as caught:
            Agent(ScriptedModel(), **given)
        assert caught.value.hint == f"write {name}=[...], also for one"


def test_a_feature_that_hands_in_nothing_is_told_so() -> None:
    """A forgotten return is the usual reason."""

    class Forgetful:
        name = "forgetful"

        def hooks(self, spec: Any) -> Any:
            Hooks()

        async def direct(self, turn: Any, stage: Any) -> None:
            pass

    with pytest.raises(ConfigurationError, match=r"hooks\(spec\) of the feature 'forgetful' returned NoneType"):
        Agent(ScriptedModel(), features=[Forgetful()])
    with pytest.raises(ConfigurationError, match=r"hooks\(spec\) of the feature 'Forgetful' returned NoneType"):
        Agent(ScriptedModel(), director=Forgetful())


def test_a_rule_that_cannot_be_called_is_refused() -> None:
    """It would fail, and so deny, at every call."""

    async def takes_one(call: Any) -> Allow[Any]:
        return Allow()

    async def takes_any(*given: Any) -> Allow[Any]:
        return Allow()

    with pytest.raises(ConfigurationError, match="rule 'takes_one' does not take two arguments"):
        before_tool(takes_one)  # type: ignore[arg-type] # the slip itself
    assert before_tool(takes_any).name == "takes_any"


class Judges:
    """Rules that are methods."""

    def at_once(self, turn: Any, call: Any) -> Allow[Any]:
        return Allow()

    async def takes_one(self, call: Any) -> Allow[Any]:
        return Allow()

    async def right(self, turn: Any, call: Any) -> Allow[Any]:
        return Allow()


def at_once(turn: Any, call: Any) -> Allow[Any]:
    """A plain function."""
    return Allow()


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (Judges().takes_one, "rule 'takes_one' does not take two arguments"),
        ("right", "a rule is a function, not a str"),
    ],
    ids=["short method", "text"],
)
def test_what_is_no_rule_is_refused_as_a_method_too(given: Any, problem: str) -> None:
    """A method as much as a function."""
    for make in (on_input, before_tool, after_tool, on_output):
        with pytest.raises(ConfigurationError, match=problem):
            make(given)
    assert before_tool(Judges().right).name == "right"


@pytest.mark.parametrize("plain", [at_once, Judges().at_once], ids=["function", "method"])
async def test_a_rule_may_be_a_plain_function(plain: Any) -> None:
    """At every moment, and it is asked like an async one."""
    agent: Agent[Any, Any] = Agent(
        ScriptedModel(call("look"), "Done."), tools=[Tool("look", lambda *_: "seen")],
        features=[make(plain) for make in (on_input, before_tool, after_tool, on_output)],
    )  # fmt: skip
    assert (await agent.turn("hi")).text == "Done."
    denies = before_tool(lambda *_: Deny("not now"))
    told = await agent.with_(model=ScriptedModel(call("look"), "Then not."), features=[denies]).turn("hi")
    assert [e.body.verdict for e in told.entries if isinstance(e.body, VerdictFiled)] == ["deny"]


def test_an_unknown_provider_is_told_the_nearest() -> None:
    """A typo is corrected, anything else gets the list."""
    with pytest.raises(ConfigurationError) as typo:
        Agent("opnai:gpt-5-mini")
    assert typo.value.hint == "did you mean 'openai'?"
    with pytest.raises(ConfigurationError) as unknown:
        Agent("zzz:m")
    assert unknown.value.hint.startswith("known providers: ")
    for maker, provider in (("gemini:gemini-3", "google"), ("claude:opus", "anthropic"), ("gpt:5", "openai")):
        with pytest.raises(ConfigurationError) as by_maker:
            Agent(maker)
        assert by_maker.value.hint == f"did you mean {provider!r}?"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("qwen3", "write provider:model; known"),
        ("gpt-5-mini", "did you mean 'openai:gpt-5-mini'?; known"),
        ("claude-sonnet-4-5", "did you mean 'anthropic:claude-sonnet-4-5'?; known"),
        ("gemini-3.8-flash", "did you mean 'google:gemini-3.8-flash'?; known"),
        ("openai/gpt-5-mini", "did you mean 'openai:gpt-5-mini'?"),
        ("groq/x:y", "did you mean 'groq:x:y'?"),
        ("openai/o3", "did you mean 'openai:o3'?"),
    ],
)
def test_a_model_without_a_provider_is_told_how_names_are_written(name: str, hint: str) -> None:
    """As other libraries take them: a bare name, or one with a slash."""
    with pytest.raises(ConfigurationError, match=f"'{name}' names no model provider") as caught:
        Agent(name)
    assert caught.value.hint.startswith(hint)


@pytest.mark.parametrize("name", ["OpenAI:gpt-5-mini", " openai:gpt-5-mini", "GPT:5"])
def test_a_provider_in_capitals_is_recognised(name: str) -> None:
    """Names are written in small letters, and whoever writes others is told."""
    with pytest.raises(ConfigurationError, match="unknown model provider") as caught:
        Agent(name)
    assert caught.value.hint == "did you mean 'openai'?"


# ---- with_ -----------------------------------------------------------------------------------------------------------


async def test_with_gives_some_parameters_anew_and_leaves_the_agent_as_it_was() -> None:
    """A new agent, compiled anew."""
    model = ScriptedModel("a", "b")
    agent: Agent[Any, Any] = Agent(model, name="ana", instructions="One.", tools=[tool("x")])
    other = agent.with_(instructions="Two.", tools=[])
    await turn(agent)
    await turn(other)
    assert [read(r)["system"] for r in model.requests] == ["One.", "Two."]
    assert [read(r)["tools"] for r in model.requests] == [["x"], []]
    assert (agent.name, other.name) == ("ana", "ana")


def test_with_checks_like_the_constructor() -> None:
    """Nothing slips in later."""
    agent: Agent[Any, Any] = Agent(ScriptedModel())
    with pytest.raises(ConfigurationError, match="rounds must be"):
        agent.with_(rounds=99)


async def test_a_list_that_changes_later_changes_nothing() -> None:
    """An agent is what it was when it was built."""
    tools, model = [tool("a")], ScriptedModel("x")
    agent: Agent[Any, Any] = Agent(model, tools=tools)
    tools.append(tool("b"))
    await turn(agent)
    assert read(model.requests[0])["tools"] == ["a"]


def test_an_agent_shows_what_it_is() -> None:
    """In one line, without its instructions."""
    agent: Agent[Any, Any] = Agent(ScriptedModel(), name="ana", tools=[tool("x")], instructions="secret")
    assert repr(agent) == "Agent('scripted:script', name='ana', 1 tools)"


async def test_a_director_is_given_like_anything_else() -> None:
    """The plain agent is the one whose director always speaks."""
    seen: list[UnsetType | str] = []

    class Quiet:
        async def direct(self, turn: Turn, stage: Stage, /) -> None:
            seen.append(turn.spec.name)

    result = await turn(Agent(ScriptedModel(), director=Quiet()))
    assert (seen, result.status) == (["agent"], "silent")
