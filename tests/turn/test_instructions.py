"""Instructions: under which conditions they are shown, templates, and the order they stand in (cases A23, J, N153)."""

from __future__ import annotations

import re
from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.conversation.inputs import Answered
from onrecord.conversation.messages import ToolCall
from onrecord.errors import ConfigurationError
from onrecord.governance import before_tool
from onrecord.record.kinds import Noted, PieceFiled
from onrecord.testing import FakeEffects, ScriptedModel, call
from onrecord.turn.instruction import FACTS, Instruction, OnActivation, OnReturn
from onrecord.turn.moments import Allow, Deny, Rank
from onrecord.turn.turn import Turn
from tests.turn.acting import bodies, read, results, tool, turn
from tests.turn.pausing.asking import approve, open_question

pytestmark = pytest.mark.unit


def system(model: ScriptedModel) -> list[str]:
    """The system text of every request."""
    return [read(request)["system"] for request in model.requests]


# ---- conditions ------------------------------------------------------------------------------------------------------


async def test_j112_a_condition_that_raises_does_not_hold() -> None:
    """It is skipped, by name, and the turn is fine (case J112)."""
    broken = Instruction("Never.", only_if=lambda _: bool(1 / 0), name="broken")
    model = ScriptedModel("Hello.")
    result = await turn(Agent(model, features=[broken, Instruction("Always.")]))
    assert system(model) == ["Always."]
    assert [(note.by, note.text) for note in bodies(result, Noted)] == [("broken", "only_if failed: ZeroDivisionError")]


def test_what_could_never_be_shown_is_refused_where_it_is_written() -> None:
    """A condition that nobody can call would never hold, and a rank that is no number has no place."""
    wrong: Any = "price"
    with pytest.raises(ConfigurationError, match="only_if of 'cost' is a function of the turn, not a str") as raised:
        Instruction("Per night.", only_if=wrong, name="cost")
    assert "OnReturn" in raised.value.hint
    with pytest.raises(ConfigurationError, match="the rank of 'cost' is a number, not 'price'"):
        Instruction("Per night.", rank=wrong, name="cost")


@pytest.mark.parametrize("which", ["x", re.compile("^x")])
async def test_j113_a_tool_of_the_last_batch_returned(which: Any) -> None:
    """Beside another one, in the next request only (case J113)."""
    model = ScriptedModel([call("y"), call("x")], [call("y")], "done")
    told = Instruction("Read x twice.", only_if=OnReturn(which))
    await turn(Agent(model, tools=[tool("x"), tool("y")], features=[told]))
    assert system(model) == ["", "Read x twice.", ""]


async def test_g83_a_call_that_never_ran_returned_nothing() -> None:
    """Settled beside a question, or declined, it does not count as a return (case G83)."""
    model = ScriptedModel([call("pay"), call("later")], "done")
    told = Instruction("It ran.", only_if=OnReturn(re.compile("pay|later")))
    agent = Agent(model, tools=[tool("pay"), tool("later")], features=[approve("pay"), told])
    waits = await turn(agent, session="s")
    answer = Answered(open_question(waits).key, approved=False)
    done = await agent.turn(answer, session=waits.session, effects=FakeEffects())
    assert sorted(results(done)) == [("later", "not_run"), ("pay", "denied")]
    assert system(model) == ["", ""]


async def test_what_the_model_activated_is_told_from_then_on() -> None:
    """For the rest of the turn, and in no other; asking for something else, or being refused, activates nothing."""
    model = ScriptedModel([call("read_skill", id="other")], [call("read_skill", id="billing")], [call("x")], "1", "2")
    told = Instruction("Ask for the invoice.", only_if=OnActivation("billing"))
    agent = Agent(model, tools=[tool("read_skill"), tool("x")], features=[told])
    first = await turn(agent, session="s")
    await turn(agent, session=first.session)
    assert [bool(text) for text in system(model)] == [False, False, True, True, False]


async def test_what_was_denied_or_another_tool_s_activates_nothing() -> None:
    """It is a call of the tool named that has to have returned."""

    @before_tool
    def refuses(turn: Turn, called: ToolCall) -> Any:
        return Deny("no") if called.name == "read_skill" else Allow()

    model = ScriptedModel([call("read_skill", id="billing"), call("open", id="billing")], "done")
    told = [
        Instruction("Ask for the invoice.", only_if=OnActivation("billing"), name="read"),
        Instruction("It is open.", only_if=OnActivation("billing", by="open"), name="opened"),
    ]
    await turn(Agent(model, tools=[tool("read_skill"), tool("open")], features=[*told, refuses]))
    assert system(model) == ["", "It is open."]


async def test_j114_a_fact_is_delivered_once() -> None:
    """One piece in each request, one text on the record, however many rounds there are (case J114).

    The original puts it into the conversation; here it leads each request, and is filed by its digest.
    """
    model = ScriptedModel([call("x")], [call("x")], "done")
    fact = Instruction("The shop opens at nine.", rank=Rank.FACT, name="hours")
    result = await turn(Agent(model, tools=[tool("x")], features=[fact]))
    assert system(model) == ["The shop opens at nine."] * 3
    assert [piece.text for piece in bodies(result, PieceFiled) if piece.source == "hours"] == [fact.text]


async def test_n153_the_same_text_is_filed_once() -> None:
    """Over three rounds, and over the turns of a session (case N153)."""
    model = ScriptedModel([call("x")], [call("x")], "done", "again")
    agent = Agent(model, instructions="Be kind.", tools=[tool("x")])
    first = await turn(agent, session="s")
    second = await turn(agent, session=first.session)
    filed = [piece.text for result in (first, second) for piece in bodies(result, PieceFiled)]
    assert filed.count("Be kind.") == 1


# ---- templates -------------------------------------------------------------------------------------------------------


def test_a23_a_template_says_known_facts_only() -> None:
    """Any other name is refused, with those that there are; so is caching it (case A23)."""
    with pytest.raises(ConfigurationError, match="the template of 'instruction' says 'user'") as raised:
        Instruction("Hello {{user}}.", template=True)
    assert all(fact in raised.value.hint for fact in FACTS)
    with pytest.raises(ConfigurationError, match="it cannot be cached"):
        Instruction("{{action}}", template=True, cache="always")
    assert Instruction("Hello {{user}}.").text == "Hello {{user}}."  # no template: braces are braces


async def test_j120_a_template_reads_as_the_request_stands() -> None:
    """The second of ten (case J120); and never cached."""
    model = ScriptedModel([call("x")], "done")
    told = Instruction("{{action}} of {{ action_budget }}, {{actions_remaining}} left", template=True, when="asked")
    await turn(Agent(model, tools=[tool("x")], features=[told], rounds=10))
    assert system(model) == ["When asked: 1 of 10, 9 left", "When asked: 2 of 10, 8 left"]
    assert [piece.cache for piece in model.requests[1].pieces] == ["never"]


async def test_a_template_without_a_budget_is_left_out_whole() -> None:
    """Where there are no rounds, and in the last request, which has no tools: never a gap."""
    told = Instruction("{{action}} of {{action_budget}}", template=True)
    without = ScriptedModel("done")
    await turn(Agent(without, features=[told], rounds=0))
    assert system(without) == [""]
    model = ScriptedModel([call("x")], "done")
    await turn(Agent(model, tools=[tool("x")], features=[told], rounds=1))
    assert system(model) == ["1 of 1", ""]


async def test_a_template_with_a_condition_needs_both() -> None:
    """It holds, and there is a budget."""
    told = Instruction("{{action}}", template=True, only_if=OnReturn("x"))
    model = ScriptedModel([call("x")], "done")
    await turn(Agent(model, tools=[tool("x")], features=[told]))
    assert system(model) == ["", "2"]


# ---- order -----------------------------------------------------------------------------------------------------------


def test_the_order_can_be_looked_at() -> None:
    """By rank, then by place in the list, conditional ones among the others; before any request is made."""
    features = [
        Instruction("Say the price.", name="prices"), Instruction("Open at nine.", rank=Rank.FACT, name="hours"),
        Instruction("Be kind.", rank=Rank.STEERING, name="house", only_if=OnReturn("x")),
        Instruction("{{action}}", template=True, name="count"),
    ]  # fmt: skip
    plan = Agent(ScriptedModel(), features=features).plan
    assert [(one.rank, one.name) for one in plan.declared] == [
        (100, "house"), (300, "hours"), (400, "prices"), (400, "count")
    ]  # fmt: skip


def test_what_a_text_says_about_caches_follows_from_its_condition() -> None:
    """Unless it says it itself."""
    holds, counts = OnReturn("x"), Instruction("{{action}}", template=True)
    made = [Instruction("a"), Instruction("b", only_if=holds), Instruction("c", only_if=holds, cache="never"), counts]
    pieces = [one.piece(action=1, budget=2) for one in made]
    assert [piece.cache for piece in pieces if piece is not None] == ["always", "while_active", "never", "never"]


# ---- declared wrongly ------------------------------------------------------------------------------------------------


async def _later(turn: Any) -> bool:
    return False


@pytest.mark.parametrize(
    "given",
    [
        {"text": None}, {"when": 3}, {"name": ""}, {"name": None}, {"rank": True},
        {"cache": "sometimes"}, {"only_if": _later},
        {"when": "it is {{late}}", "template": True},
    ],
)  # fmt: skip
def test_what_cannot_be_told_is_refused(given: dict[str, Any]) -> None:
    """When it is declared: a condition that has to be awaited, above all, would always hold."""
    with pytest.raises(ConfigurationError):
        Instruction(**{"text": "Be brief.", **given})


async def test_a_condition_that_turns_out_to_be_awaited_does_not_hold() -> None:
    """Behind a function that looks plain, too; it is noted like one that raises."""

    def looks_plain(turn: Any) -> Any:
        return _later(turn)

    model = ScriptedModel("done")
    result = await turn(Agent(model, features=[Instruction("secret", only_if=looks_plain)]))
    assert read(model.requests[0])["system"] == ""
    assert [note.text for note in bodies(result, Noted)] == ["only_if failed: TypeError"]


async def test_nobodys_braces_are_filled_in_but_a_templates() -> None:
    """Neither in what a person says, nor in plain instructions; a template fills in its condition's words too."""
    model = ScriptedModel("done")
    told = Instruction("is {{ action }}", when="action {{action_budget}}", template=True)
    plain = Instruction("plain {{action}}", name="plain")
    await turn(Agent(model, instructions="base {{action}}", features=[plain, told]), "my {{action}} {{x}}")
    request = read(model.requests[0])
    assert request["system"] == "base {{action}}\n\nplain {{action}}\n\nWhen action 5: is 1"
    assert request["messages"][0]["content"] == "my {{action}} {{x}}"
